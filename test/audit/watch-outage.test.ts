import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { sha256, verifyNow } from "../../audit/native.ts";
import { type LookOptions, look } from "../../audit/watch/look.ts";
import { WatchState } from "../../audit/watch/state.ts";
import { checkpointOf, filesOf, vkey, vkeyText } from "./archive.ts";
import { command, openHome } from "./command.ts";
import { LOG_ID } from "./log.ts";
import type { Lie } from "./server.ts";
import { FORK, LOG, ORIGIN, type Shown, showLog, showWitness } from "./watching.ts";

const home = openHome();
afterAll(() => home.remove());
let states = 0;
let state = "";
beforeEach(() => {
  state = join(home.folder, `${states++}.watch`);
});
const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function address(lie?: Lie): Promise<Shown> {
  const shown = await showLog(LOG, 500, lie);
  closing.push(shown.close);
  return shown;
}

/** Waits for nothing, at a clock of its own. */
function options(urls: string[], at = 0): LookOptions {
  const trust = { vkeys: [vkey()], hash: sha256, verify: verifyNow, log: LOG_ID, origin: ORIGIN };
  const memory = new WatchState(state, LOG_ID, trust);
  const asking = { ...trust, urls, monitors: [], pause: async () => {} };
  return { ...asking, state: memory, now: () => at };
}

/** Tiles that are answered with 503 for as long as they are away. */
function tiles(): { away: boolean; lie: Lie } {
  const lie: Lie = (path, answer) => {
    const gone = held.away && path.startsWith("tile/");
    if (gone) answer.writeHead(503).end();
    return gone;
  };
  const held = { away: true, lie };
  return held;
}

test("an outage is no alarm, and what was seen before it is not forgotten", async () => {
  let away = false;
  const lie: Lie = (_, answer) => {
    if (away) answer.writeHead(503).end();
    return away;
  };
  const { show, url } = await address(lie);
  await look(options([url], 1_000));
  away = true;
  const missed = await look(options([url], 9_000));
  expect(missed).toMatchObject({ views: [], alarm: undefined, missed: [{ from: url }] });
  expect(missed.seen.map(({ at }) => at)).toEqual([1_000]);
  away = false;
  show(filesOf(FORK, [700]));
  expect((await look(options([url]))).alarm?.code).toBe("split-view");
});

test("tiles that do not come in the middle of a look are an outage too", async () => {
  const held = tiles();
  const { url } = await address(held.lie);
  const missed = await look(options([url]));
  expect(missed).toMatchObject({ alarm: undefined, proven: undefined, missed: [{ from: url }] });
  held.away = false;
  expect(await look(options([url]))).toMatchObject({ missed: [], proven: 500n });
});

test("two roots of one size are an alarm though no address gives a tile", async () => {
  const [a, b] = [await address(tiles().lie), await address(tiles().lie)];
  b.show(filesOf(FORK, [500]));
  expect((await look(options([a.url, b.url]))).alarm).toMatchObject({
    code: "split-view",
    notes: [{ from: a.url }, { from: b.url }],
  });
});

test("a truth that was shown without its tiles is kept, and held against the next one", async () => {
  const held = tiles();
  const { show, url } = await address(held.lie);
  show(filesOf(FORK, [500]));
  expect((await look(options([url]))).alarm).toBeUndefined();
  show(filesOf(LOG, [700]));
  held.away = false;
  expect((await look(options([url]))).alarm).toMatchObject({ code: "split-view" });
});

test("who claims the most and withholds its tiles does not keep the others from being compared", async () => {
  const [a, b, c] = [await address(tiles().lie), await address(), await address()];
  a.show(filesOf(LOG, [700]));
  c.show(filesOf(FORK, [400]));
  expect((await look(options([a.url, b.url, c.url]))).alarm).toMatchObject({
    code: "split-view",
    notes: [{ from: c.url }, { from: b.url }],
  });
});

test("a tree is compared by the tiles of whichever address has them", async () => {
  const [a, b] = [await address(tiles().lie), await address()];
  const looked = await look(options([a.url, b.url]));
  expect(looked).toMatchObject({ alarm: undefined, missed: [], proven: 500n });
  a.show(filesOf(FORK, [400]));
  expect((await look(options([a.url, b.url]))).alarm?.code).toBe("rollback");
  expect(looked.seen).toHaveLength(2);
});

test("what a witness has cosigned, and the log has not shown for a day, is an alarm", async () => {
  const { url } = await address();
  const witness = await showWitness(() => checkpointOf(LOG, 700));
  closing.push(witness.close);
  const asking = { ...options([url]), monitors: [witness.url] };
  const day = 24 * 3_600_000;
  for (const at of [0, day - 1]) {
    const early = await look({ ...asking, now: () => at });
    expect([early.alarm, early.ahead.length]).toEqual([undefined, 1]);
  }
  expect((await look({ ...asking, now: () => day })).alarm).toMatchObject({
    code: "withheld",
    notes: [{ from: witness.url }, { from: url }],
  });
});

test("how long ago an address was seen is said", async () => {
  const { url } = await address();
  await look(options([url], Date.now() - 3_600_000));
  const gone = `http://127.0.0.1:1/logs/${LOG_ID}`;
  writeFileSync(state, readFileSync(state, "utf8").replaceAll(url, gone));
  const once = ["--vkey", vkeyText(), "--state", state, "--once"];
  const { exit, out } = await command("watch", gone, ...once);
  expect([exit, out]).toEqual([2, expect.stringMatching(/last seen 360[0-9] s ago/)]);
});

test("a token goes to the server of the first address, and to no other", async () => {
  const heard: [string, string | undefined][] = [];
  const hear =
    (name: string): Lie =>
    (_, answer, ask) => {
      heard.push([name, ask.headers.authorization]);
      answer.writeHead(404).end();
      return true;
    };
  const [own, mirror] = [await address(hear("own")), await address(hear("mirror"))];
  const witness = await address(hear("witness"));
  const monitors = [new URL(witness.url).origin];
  await look({ ...options([own.url, mirror.url]), monitors, token: "secret" });
  expect(heard.sort()).toEqual([
    ["mirror", undefined],
    ["own", "Bearer secret"],
    ["witness", undefined],
  ]);
});
