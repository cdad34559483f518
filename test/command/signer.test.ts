/** Keys with an external command: what it does wrong costs time, and is never published. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, onTestFinished, test, vi } from "vitest";
import { layFoundation } from "../../src/command/foundation.ts";
import { openSigner, type Signer } from "../../src/command/signer.ts";
import { readConfig } from "../../src/config.ts";
import { ConfigError } from "../../src/config-error.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import type { SigningKey } from "../../src/flow/key/signing-key.ts";
import { compiled } from "../compile.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";

const PROGRAM = compiled(new URL("signing-program.ts", import.meta.url));

const folder = mkdtempSync(join(tmpdir(), "minutebook-signer-"));
afterAll(() => rmSync(folder, { recursive: true }));
let count = 0;

interface Opened {
  signer: Signer;
  log: SigningKey;
  receipt: SigningKey;
  failures: string[];
  starts: () => number;
}

function wordsOf(...args: string[]): [string, ...string[]] {
  return [process.execPath, PROGRAM, ...args];
}

async function open(silenceMs = 20_000, ...args: string[]): Promise<Opened> {
  count += 1;
  const file = join(folder, `starts-${count}`);
  const failures: string[] = [];
  const signer = await openSigner({
    words: wordsOf(file, ...args),
    failed: ({ message }) => failures.push(message),
    silenceMs,
    backoffMs: [1, 50],
  });
  onTestFinished(() => signer.close());
  const [log] = signer.checkpoint;
  const [receipt] = signer.receipt;
  if (log === undefined || receipt === undefined) throw new Error("no keys");
  const starts = () => readFileSync(file, "utf8").split("\n").length - 1;
  return { signer, log, receipt, failures, starts };
}

const unavailable = { code: "signer-unavailable" };
const message = (text: string): Uint8Array => encodeUtf8(text);

async function expectSigns({ log, receipt }: Opened, text = "checkpoint"): Promise<void> {
  for (const key of [log, receipt]) {
    const signature = await key.sign(message(text));
    expect(verifyByOpenssl(signature, message(text), key.publicKey)).toBe(true);
  }
}

function back({ signer }: Opened): Promise<boolean> {
  return vi.waitUntil(() => signer.available(), { timeout: 20_000 });
}

test("it signs with each key that it describes, many at once, and in whatever order it answers", async () => {
  const opened = await open();
  const { signer, log, starts } = opened;
  expect(signer.checkpoint.map(({ publicKey }) => publicKey)).toEqual([
    testKey(71).publicKey,
    testKey(73).publicKey,
  ]);
  expect(signer.receipt.map(({ publicKey }) => publicKey)).toEqual([testKey(72).publicKey]);
  await expectSigns(opened);
  const order: string[] = [];
  const asked = ["later", "later", "now"].map(async (text) => {
    expect(verifyByOpenssl(await log.sign(message(text)), message(text), log.publicKey)).toBe(true);
    order.push(text);
  });
  await Promise.all(asked);
  expect(order).toEqual(["now", "later", "later"]);
  await Promise.all(Array.from({ length: 200 }, (_, i) => expectSigns(opened, `report ${i}`)));
  expect(starts()).toBe(1);
});

test.each([
  ["dies", "die", "signer: it ended (3)"],
  ["signs wrongly", "lie", "signer: a wrong signature by log"],
  ["answers what nobody asked", "babble", "signer: an answer to nothing that was asked"],
  ["answers without an end", "flood", "signer: a line without an end"],
])("one that %s is away, told, and started again", async (_, text, reason) => {
  const opened = await open();
  const { log, signer, failures, starts } = opened;
  const waiting = expect(log.sign(message("later"))).rejects.toMatchObject(unavailable);
  await expect(log.sign(message(text))).rejects.toMatchObject(unavailable);
  await waiting;
  await vi.waitUntil(() => failures.length > 0, { timeout: 20_000 });
  await back(opened);
  await expectSigns(opened);
  expect(signer.available()).toBe(true);
  expect(failures).toEqual([reason]);
  expect(starts()).toBe(2);
});

test("one that falls silent is away, however many wait", async () => {
  const opened = await open(700);
  const waiting = ["hush", "hush", "hush"].map((text) =>
    expect(opened.log.sign(message(text))).rejects.toMatchObject(unavailable),
  );
  await Promise.all(waiting);
  await vi.waitUntil(() => opened.failures.length > 0, { timeout: 20_000 });
  expect(opened.failures).toEqual(["signer: it does not answer"]);
  expect(opened.signer.available()).toBe(false);
  await expect(opened.log.sign(message("x"))).rejects.toMatchObject(unavailable);
});

test("what it refuses fails alone", async () => {
  const opened = await open();
  await expect(opened.log.sign(message("refuse"))).rejects.toMatchObject(unavailable);
  await expectSigns(opened);
  expect([opened.failures, opened.starts()]).toEqual([[], 1]);
});

test("more than it can answer is not asked, and the service says so before it takes anything", async () => {
  const opened = await open();
  const { log, signer } = opened;
  const waiting = Array.from({ length: 256 }, () => log.sign(message("later")));
  expect(signer.available()).toBe(false);
  await expect(log.sign(message("one more"))).rejects.toMatchObject(unavailable);
  const [outcomes] = await Promise.all([Promise.allSettled(waiting), signer.close()]);
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
});

test("one that comes back with another key stays away", async () => {
  const opened = await open(20_000, "74");
  await expect(opened.log.sign(message("die"))).rejects.toMatchObject(unavailable);
  await vi.waitUntil(() => opened.failures.length > 2, { timeout: 20_000 });
  expect(opened.failures.slice(1, 3)).toEqual([
    "signer: it came back with other keys",
    "signer: it came back with other keys",
  ]);
  expect(opened.signer.available()).toBe(false);
});

test.each([
  ["is not there", ["/nowhere/signer"]],
  ["ends at once", [process.execPath, "-e", "process.exit(0)"]],
  ["speaks another protocol", [process.execPath, "-e", "console.log('hello')"]],
])("a service does not start with a signer that %s", async (_, words) => {
  const failed = (): void => expect.unreachable();
  await expect(openSigner({ words: words as [string], failed })).rejects.toThrow(ConfigError);
});

test("SIGNER_COMMAND is all that a service needs to have its keys elsewhere", async () => {
  const environment = {
    DATABASE_URL: "postgres://writer@nowhere/minutebook",
    ARCHIVE_URL: folder,
    PRINCIPAL_KEY_FILE: "/nowhere/principal.key",
    ISSUERS_FILE: "/nowhere/issuers.json",
    SIGNER_COMMAND: JSON.stringify(wordsOf(join(folder, "never"))),
  };
  const config = readConfig(environment);
  expect(config.external?.keys).toEqual({ kind: "command", words: wordsOf(join(folder, "never")) });
  // Whatever else is missing, no command is left running.
  await expect(layFoundation(config, folder, () => undefined)).rejects.toThrow("principal.key");
  expect(() => readFileSync(join(folder, "never"))).toThrow("ENOENT");
});
