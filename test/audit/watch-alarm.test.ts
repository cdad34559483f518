import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { exclusively, here } from "../../audit/exclusive.ts";
import { decodeUtf8 } from "../../src/core/text.ts";
import { compiled } from "../compile.ts";
import { checkpointOf, filesOf, signer, vkeyText } from "./archive.ts";
import { command, type Ended, openHome } from "./command.ts";
import { LOG_ID, type TestLog } from "./log.ts";
import type { Lie } from "./server.ts";
import { LOG, type Shown, showLog, showWitness } from "./watching.ts";

const home = openHome();
afterAll(() => home.remove());
let folders = 0;
let folder = "";
let state = "";
beforeEach(() => {
  folder = join(home.folder, String(folders++));
  mkdirSync(folder);
  state = join(folder, "state");
});
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function address(log: TestLog, size: number, lie?: Lie): Promise<Shown> {
  const shown = await showLog(log, size, lie);
  closing.push(shown.close);
  return shown;
}

async function monitor(note: () => Uint8Array): Promise<string> {
  const { close, url } = await showWitness(note);
  closing.push(close);
  return url;
}

async function lookOnce(urls: string[], ...args: string[]): Promise<Ended> {
  const vkeys = ["--vkey", vkeyText()];
  return await command("watch", ...urls, ...vkeys, "--state", state, "--once", ...args);
}

function rootOf(size: number): string {
  return decodeUtf8(checkpointOf(LOG, size))?.split("\n")[2] ?? "";
}

test("a page that the log has not signed accuses nobody, whoever shows it", async () => {
  const { show, url } = await address(LOG, 500);
  await lookOnce([url]);
  const forged = { ...signer(LOG_ID), sign: () => new Uint8Array(64).fill(1) };
  show(filesOf(LOG, [500]).set("checkpoint/700", checkpointOf(LOG, 700, undefined, [forged])));
  const unsigned = await lookOnce([url]);
  expect(unsigned).toMatchObject({ exit: 2, out: expect.stringContaining("checkpoint-signature") });
  const witness = await monitor(() => Buffer.from("down for maintenance\n"));
  const { exit, out } = await lookOnce([url], "--monitor", witness);
  expect([exit, out]).toEqual([2, expect.stringContaining("checkpoint-malformed")]);
  expect(readdirSync(folder)).toEqual(["state"]);
});

test("a log's address is the same however it is written", async () => {
  const { show, url } = await address(LOG, 700);
  await lookOnce([url]);
  show(filesOf(LOG, [300]));
  for (const other of [`${url}/`, url.replace("http", "HTTP"), url.replace("/logs", "/./logs")]) {
    expect((await lookOnce([other])).out).toContain("ALARM: rollback");
  }
});

test("an alarm whose evidence cannot be written is said all the same, with both notes", async () => {
  const { show, url } = await address(LOG, 700);
  state = join(folder, "s".repeat(230)); // room for the state's names, and none for the evidence's
  await lookOnce([url]);
  show(filesOf(LOG, [300]));
  for (const args of [[], ["--json"]]) {
    const { err, exit, out } = await lookOnce([url], ...args);
    expect([exit, err]).toEqual([1, expect.stringContaining("cannot be written")]);
    expect(out).toContain("rollback");
    for (const size of [700, 300]) expect(out).toContain(rootOf(size));
  }
});

test("an alarm is said though the state can no longer be written", async () => {
  const { show, url } = await address(LOG, 700);
  await lookOnce([url]);
  writeFileSync(`${state}.lock`, ""); // no lock of a watch: nobody will let go of it
  show(filesOf(LOG, [300]));
  const { err, exit, out } = await lookOnce([url]);
  expect([exit, out]).toEqual([1, expect.stringContaining("ALARM: rollback")]);
  expect(err).toContain("state.lock");
});

test("a slower look never writes over what a faster one has seen", async () => {
  let heard: (() => void) | undefined;
  const reached = new Promise<void>((asked) => {
    heard = asked;
  });
  let fast: Promise<Ended> | undefined;
  const lie: Lie = (path, answer) => {
    if (!path.startsWith("tile/") || fast !== undefined) return false;
    const tile = filesOf(LOG, [300]).get(path);
    show(filesOf(LOG, [700]));
    fast = lookOnce([url]).finally(() => answer.end(tile));
    heard?.();
    return true;
  };
  const { show, url } = await address(LOG, 300, lie);
  const slow = lookOnce([url]);
  await reached;
  expect((await fast)?.out).toContain("700 entries");
  await slow;
  show(filesOf(LOG, [300]));
  expect((await lookOnce([url])).out).toContain("ALARM: rollback");
});

test("a process that was killed with the lock keeps nobody out", async () => {
  const { url } = await address(LOG, 300);
  const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"]);
  child.kill("SIGKILL");
  await once(child, "exit");
  symlinkSync(`${child.pid} id ${here()}`, `${state}.lock`);
  expect((await lookOnce([url])).exit).toBe(0);
  expect(readdirSync(folder)).toEqual(["state"]);
});

test("a lock whose holder may live, for all that anybody here knows, is not broken", async () => {
  const { url } = await address(LOG, 300);
  symlinkSync("1 id elsewhere", `${state}.lock`);
  const { err, exit } = await lookOnce([url]);
  expect([exit, err]).toEqual([2, expect.stringContaining("1 id elsewhere")]);
  expect(readdirSync(folder)).toEqual(["state.lock"]);
});

test("of many that write to one path at once, each sees what the one before it wrote", async () => {
  const path = join(folder, "count");
  writeFileSync(path, "0");
  const script = `
    import { readFileSync, writeFileSync } from "node:fs";
    import { exclusively, here } from ${JSON.stringify(compiled(new URL("../../audit/exclusive.ts", import.meta.url)))};
    for (let i = 0; i < 25; i += 1) {
      await exclusively(process.argv[1], () =>
        writeFileSync(process.argv[1], String(Number(readFileSync(process.argv[1], "utf8")) + 1)));
    }`;
  const args = ["--input-type=module", "-e", script, path];
  const ends = Array.from({ length: 3 }, () => {
    const child = spawn(process.execPath, args, { stdio: "inherit" });
    return new Promise((ended) => child.once("exit", ended));
  });
  expect(await Promise.all(ends)).toEqual([0, 0, 0]);
  expect(await exclusively(path, () => readFileSync(path, "utf8"))).toBe("75");
});
