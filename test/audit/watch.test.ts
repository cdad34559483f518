import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { sha256 } from "../../audit/native.ts";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { linesOf } from "../../src/core/note.ts";
import { verifyConsistency } from "../../src/core/proof.ts";
import { decodeBase64, decodeUtf8 } from "../../src/core/text.ts";
import { compiled } from "../compile.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, type Files, filesOf, signer, vkeyText } from "./archive.ts";
import { command, type Ended, openHome } from "./command.ts";
import { LOG_ID, OTHER_LOG_ID, type TestLog } from "./log.ts";
import { FORK, LOG, type Shown, showLog, showWitness } from "./watching.ts";

const home = openHome();
afterAll(() => home.remove());
let states = 0;
let state = "";
beforeEach(() => {
  state = join(home.folder, `${states++}.watch`);
});
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function address(log: TestLog, size: number): Promise<Shown> {
  const shown = await showLog(log, size);
  closing.push(shown.close);
  return shown;
}

async function monitor(note: () => Uint8Array | undefined): Promise<string> {
  const { close, url } = await showWitness(note);
  closing.push(close);
  return url;
}

async function lookOnce(urls: string[], ...args: string[]): Promise<Ended> {
  const vkeys = ["--vkey", vkeyText()];
  return await command("watch", ...urls, ...vkeys, "--state", state, "--once", ...args);
}

/** The files of evidence beside the state. */
function evidence(): Record<string, unknown>[] {
  return readdirSync(home.folder)
    .filter((name) => join(home.folder, name).startsWith(`${state}.evidence-`))
    .map((name) => JSON.parse(readFileSync(join(home.folder, name), "utf8")));
}

test("a log that only grows is followed, and its state says what was seen", async () => {
  const { show, url } = await address(LOG, 300);
  expect(await lookOnce([url])).toMatchObject({
    exit: 0,
    err: "",
    out: expect.stringContaining("300 entries"),
  });
  show(filesOf(LOG, [700]));
  expect(await lookOnce([url])).toMatchObject({
    exit: 0,
    out: expect.stringContaining("700 entries"),
  });
  const { log, seen } = JSON.parse(readFileSync(state, "utf8"));
  expect([log, seen.length, seen[0].from]).toEqual([LOG_ID, 1, url]);
  expect(parseCheckpoint(linesOf(seen[0].note)?.text ?? "")?.size).toBe(700n);
});

test("a rollback is an alarm, with both notes, and again on every look", async () => {
  const { show, url } = await address(LOG, 700);
  await lookOnce([url]);
  show(filesOf(LOG, [300]));
  for (let i = 0; i < 2; i += 1) {
    const { exit, out } = await lookOnce([url]);
    expect([exit, out]).toEqual([1, expect.stringContaining("ALARM: rollback")]);
  }
  const [kept, ...others] = evidence();
  expect(others).toEqual([]);
  expect(kept).toMatchObject({
    alarm: "rollback",
    log: LOG_ID,
    notes: [
      { from: url, note: decodeUtf8(checkpointOf(LOG, 700)) },
      { from: url, note: decodeUtf8(checkpointOf(LOG, 300)) },
    ],
  });
});

test("a log that forked is an alarm, with a proof that whoever has the notes can see fail", async () => {
  const { show, url } = await address(LOG, 500);
  await lookOnce([url]);
  show(filesOf(FORK, [700]));
  const { exit, out } = await lookOnce([url], "--json");
  expect([exit, JSON.parse(out).alarm]).toEqual([1, "split-view"]);
  const [kept = {}] = evidence();
  const notes = kept["notes"] as { note: string }[];
  const [from, to] = notes.map(({ note }) => parseCheckpoint(linesOf(note)?.text ?? ""));
  if (from === undefined || to === undefined) throw new Error("no evidence");
  expect([from.size, to.size]).toEqual([500n, 700n]);
  const proof = (kept["proof"] as string[]).map((hash) => decodeBase64(hash) ?? new Uint8Array());
  expect(proof.length).toBeGreaterThan(0);
  const roots = { fromRoot: from.root, toRoot: to.root };
  expect(verifyConsistency({ from: 500n, to: 700n, proof, ...roots }, sha256)).toBe(false);
});

test("another root at the same size is an alarm", async () => {
  const { show, url } = await address(LOG, 700);
  await lookOnce([url]);
  show(filesOf(FORK, [700]));
  expect((await lookOnce([url])).out).toContain("ALARM: split-view");
});

test("two addresses that show two truths at once are an alarm, at whichever sizes", async () => {
  for (const size of [400, 700]) {
    const [a, b] = [await address(LOG, 700), await address(FORK, size)];
    state = join(home.folder, `${states++}.watch`);
    const { exit, out } = await lookOnce([a.url, b.url]);
    expect([exit, out]).toEqual([1, expect.stringContaining("split-view")]);
    // What contradicts itself is kept like everything else, and is an alarm again by itself.
    expect((await lookOnce([a.url])).exit).toBe(1);
  }
});

test("an address that only lags behind another is no alarm, until it shows what it hid", async () => {
  const [a, b] = [await address(LOG, 700), await address(LOG, 400)];
  expect((await lookOnce([a.url, b.url])).exit).toBe(0);
  b.show(filesOf(LOG, [500]));
  const { exit, out } = await lookOnce([b.url]);
  expect([exit, out]).toEqual([2, expect.stringContaining(`${a.url} has shown 700 entries`)]);
  // By itself the second went on honestly; what was seen before says otherwise.
  b.show(filesOf(FORK, [600]));
  expect((await lookOnce([b.url])).exit).toBe(1);
});

test("what a witness has cosigned is compared as well", async () => {
  const { url } = await address(LOG, 700);
  let note: Uint8Array | undefined;
  const witness = await monitor(() => note);
  const unknown = await lookOnce([url], "--monitor", witness);
  expect(unknown).toMatchObject({ exit: 2, out: expect.stringContaining("cosigned nothing") });
  note = checkpointOf(LOG, 700);
  expect((await lookOnce([url], "--monitor", witness)).exit).toBe(0);
  note = checkpointOf(LOG, 600); // it may lag behind itself
  expect((await lookOnce([url], "--monitor", witness)).exit).toBe(0);
  note = checkpointOf(FORK, 600);
  const { exit, out } = await lookOnce([url], "--monitor", witness);
  expect([exit, out]).toEqual([1, expect.stringContaining("split-view")]);
});

test("a witness that has seen more than the log shows is said, and compared once the log shows it", async () => {
  const { show, url } = await address(LOG, 300);
  const witness = await monitor(() => checkpointOf(FORK, 600));
  const early = await lookOnce([url], "--monitor", witness);
  expect([early.exit, early.out]).toEqual([2, expect.stringContaining("has shown 600 entries")]);
  const { ahead } = JSON.parse((await lookOnce([url], "--monitor", witness, "--json")).out);
  expect(ahead).toMatchObject([{ from: witness, size: "600" }]);
  show(filesOf(LOG, [700]));
  expect((await lookOnce([url])).out).toContain("ALARM: split-view");
});

test("all that a witness has shown while the log was behind is compared, not only the last of it", async () => {
  const { show, url } = await address(LOG, 300);
  let note = checkpointOf(FORK, 500);
  const witness = await monitor(() => note);
  await lookOnce([url], "--monitor", witness);
  note = checkpointOf(LOG, 600);
  const behind = await lookOnce([url], "--monitor", witness);
  expect(behind.out.match(/has shown [56]00 entries/g)).toHaveLength(2);
  show(filesOf(LOG, [700]));
  expect((await lookOnce([url], "--monitor", witness)).out).toContain("ALARM: split-view");
});

test("what was compared is kept once for each address, and what agrees is compared once", async () => {
  const { show, url } = await address(LOG, 300);
  let note = checkpointOf(LOG, 400);
  const witness = await monitor(() => note);
  await lookOnce([url], "--monitor", witness);
  note = checkpointOf(LOG, 500);
  await lookOnce([url], "--monitor", witness);
  expect(JSON.parse(readFileSync(state, "utf8")).seen).toHaveLength(3);
  show(filesOf(LOG, [700]));
  expect((await lookOnce([url], "--monitor", witness)).exit).toBe(0);
  expect(JSON.parse(readFileSync(state, "utf8")).seen).toHaveLength(2);
});

test.each([
  ["tile-missing", (files: Files) => files.delete("tile/0/002.p/188")],
  ["checkpoint-root", (files: Files) => files.set("tile/0/002.p/188", new Uint8Array(188 * 32))],
] as const)("%s is an alarm by that name, and its note is kept", async (code, harm) => {
  const { show, url } = await address(LOG, 300);
  await lookOnce([url]);
  const files = filesOf(LOG, [700]);
  harm(files);
  show(files);
  const { exit, out } = await lookOnce([url]);
  expect([exit, out]).toEqual([1, expect.stringContaining(`ALARM: ${code}`)]);
  expect(evidence()).toHaveLength(1);
});

test("a checkpoint by no given key is no alarm: whoever signed it accuses nobody", async () => {
  const { show, url } = await address(LOG, 500);
  await lookOnce([url]);
  const files = filesOf(LOG, [700]);
  files.set("checkpoint/700", checkpointOf(LOG, 700, undefined, [signer(LOG_ID, testKey(9))]));
  show(files);
  expect(await lookOnce([url])).toMatchObject({
    exit: 2,
    out: expect.stringContaining("no given key"),
  });
});

test("a state that cannot be read, or is of another log or key, is never taken for none", async () => {
  const { url } = await address(LOG, 500);
  await lookOnce([url]);
  const whole = readFileSync(state, "utf8");
  for (const text of ["", "{}", whole.slice(0, -20), whole.replace(LOG_ID, OTHER_LOG_ID)]) {
    writeFileSync(state, text);
    expect([text.length, (await lookOnce([url])).exit]).toEqual([text.length, 2]);
  }
  writeFileSync(state, whole.replace("\\n500\\n", "\\n501\\n"));
  expect(await lookOnce([url])).toMatchObject({
    exit: 2,
    err: expect.stringContaining("signature"),
  });
});

test("what is no checkpoint at all was not seen", async () => {
  const { show, url } = await address(LOG, 300);
  show(new Map([["checkpoint/700", Buffer.from("x\n700\n")]]));
  expect(await lookOnce([url])).toMatchObject({ exit: 2, out: expect.stringContaining("is none") });
  expect(evidence()).toEqual([]);
});

test("addresses of another log, or of none, are refused", async () => {
  const { url } = await address(LOG, 500);
  const other = url.replace(LOG_ID, OTHER_LOG_ID);
  expect((await lookOnce([url, other])).exit).toBe(2);
  expect((await lookOnce(["http://127.0.0.1:1/"])).exit).toBe(2);
  expect((await lookOnce([other])).exit).toBe(2);
  expect((await lookOnce([url], "--interval", "0")).exit).toBe(2);
});

test("the program follows a log until it contradicts itself, look after look", async () => {
  const { show, url } = await address(LOG, 300);
  const cli = compiled(new URL("../../audit/cli.ts", import.meta.url));
  const args = ["watch", url, "--vkey", vkeyText(), "--state", state, "--interval", "1"];
  const child = spawn(process.execPath, [cli, ...args]);
  let out = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    out += text;
    // Told by what it says, and not by a clock: grown after the first look, forked after the second.
    if (out.includes("500 entries")) show(filesOf(FORK, [700]));
    else show(filesOf(LOG, [500]));
  });
  const [status] = await once(child, "close");
  expect([status, out]).toEqual([1, expect.stringContaining("ALARM: split-view")]);
  expect(out).toContain("300 entries, consistent");
  expect(evidence()).toHaveLength(1);
});
