import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test } from "vitest";
import { sha256, verifyNow } from "../../audit/native.ts";
import { type Look, type LookOptions, look } from "../../audit/watch/look.ts";
import { readSeen, type Seen, updated, writeSeen } from "../../audit/watch/state.ts";
import { filesOf, vkey, vkeyText } from "./archive.ts";
import { command, openHome } from "./command.ts";
import { LOG_ID } from "./log.ts";
import type { Lie } from "./server.ts";
import { FORK, LOG, ORIGIN, type Shown, showLog } from "./watching.ts";

const home = openHome();
afterAll(() => home.remove());
const state = join(home.folder, "state.watch");
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
function options(urls: string[]): LookOptions {
  const trust = { vkeys: [vkey()], hash: sha256, verify: verifyNow, log: LOG_ID, origin: ORIGIN };
  return { ...trust, urls, monitors: [], pause: async () => {}, timeoutMs: 500 };
}

function taken(seen: Seen[], { views }: Look, at: number): Seen[] {
  const next = updated(seen, views, at);
  writeSeen(state, LOG_ID, next);
  return readSeen(state, LOG_ID, options([]));
}

test("an outage is no alarm, and what was seen before it is not forgotten", async () => {
  let away = false;
  const lie: Lie = (_, answer) => {
    if (away) answer.writeHead(503).end();
    return away;
  };
  const { show, url } = await address(lie);
  let seen = taken([], await look([], options([url])), 1_000);
  away = true;
  const missed = await look(seen, options([url]));
  expect(missed).toMatchObject({ views: [], alarm: undefined, missed: [{ from: url }] });
  seen = taken(seen, missed, 9_000);
  expect(seen.map(({ at }) => at)).toEqual([1_000]);
  away = false;
  show(filesOf(FORK, [700]));
  expect((await look(seen, options([url]))).alarm?.code).toBe("split-view");
});

test("tiles that do not come in the middle of a look are an outage too", async () => {
  let away = true;
  const lie: Lie = (path, answer) => {
    const gone = away && path.startsWith("tile/");
    if (gone) answer.writeHead(500).end();
    return gone;
  };
  const { url } = await address(lie);
  const missed = await look([], options([url]));
  expect(missed).toMatchObject({ views: [], alarm: undefined, missed: [{ from: "tiles" }] });
  away = false;
  expect(await look([], options([url]))).toMatchObject({ missed: [], views: [{ from: url }] });
});

test("how long ago an address was seen is said", async () => {
  const { url } = await address();
  taken([], await look([], options([url])), Date.now() - 3_600_000);
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
  await look([], { ...options([own.url, mirror.url]), monitors, token: "secret" });
  expect(heard.sort()).toEqual([
    ["mirror", undefined],
    ["own", "Bearer secret"],
    ["witness", undefined],
  ]);
});
