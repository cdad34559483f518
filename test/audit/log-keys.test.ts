/** Keys that the log adds and retires itself, and what rests on them. */
import { describe, expect, test } from "vitest";
import { httpSource } from "../../audit/http/source.ts";
import { exitOf, printResult } from "../../audit/print.ts";
import type { AuditResult } from "../../audit/verify.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { cosign } from "../../src/core/cosignature.ts";
import { encodeEntry } from "../../src/core/entry.ts";
import { formatVkey, parseVkey, type Vkey } from "../../src/core/note.ts";
import { parsePolicy } from "../../src/core/policy.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { bundlePath } from "../../src/core/tile.ts";
import { type TestKey, testKey } from "../signing.ts";
import {
  auditFiles,
  auditSource,
  checkpointOf,
  type Files,
  filesOf,
  said,
  signer,
} from "./archive.ts";
import { smallLog } from "./honest.ts";
import { LOG_ID, NOW, SALT, type TestLog } from "./log.ts";
import { serveFiles } from "./server.ts";

const ORIGIN = `test/${LOG_ID}`;
const OLD = testKey(1);
const NEW = testKey(21);
const NEWEST = testKey(22);

function body(key: TestKey, state: "added" | "retired") {
  const vkey = formatVkey(ORIGIN, key.publicKey);
  return { approval: "", by: "operator", purpose: "checkpoint", salt: SALT, state, vkey } as const;
}

function trust(...keys: TestKey[]): { vkeys: Vkey[] } {
  const vkeys = keys.map(({ publicKey }) => parseVkey(formatVkey(ORIGIN, publicKey)));
  return { vkeys: vkeys.filter((vkey) => vkey !== undefined) };
}

function filler(log: TestLog, size: number): void {
  const schema_sha256 = encodeBase64(new Uint8Array(32));
  while (log.size < size) {
    log.write("service", { schema_sha256, salt: SALT, version: String(log.size) });
  }
}

/** Entry 7 adds a key, 10 retires the first one; 16 and 19 do so once more. */
function rotatedLog(): TestLog {
  const log = smallLog();
  log.write("log_key", body(NEW, "added"));
  filler(log, 10);
  log.write("log_key", body(OLD, "retired"));
  filler(log, 16);
  log.write("log_key", body(NEWEST, "added"));
  filler(log, 19);
  log.write("log_key", body(NEW, "retired"));
  filler(log, 22);
  return log;
}

const log = rotatedLog();
const HONEST: [number, TestKey[]][] = [
  [5, [OLD]],
  [9, [OLD, NEW]],
  [12, [NEW]],
  [18, [NEW, NEWEST]],
  [22, [NEWEST]],
];

/** The log's archive with checkpoints by these keys. */
function signedBy(checkpoints: readonly (readonly [number, readonly TestKey[]])[]): Files {
  const sizes = new Set([...HONEST, ...checkpoints].map(([size]) => size));
  const files = filesOf(
    log,
    [...sizes].sort((a, b) => a - b),
  );
  for (const [size] of HONEST) files.delete(`checkpoint/${size}`);
  for (const [size, keys] of checkpoints) {
    const signers = keys.map((key) => signer(LOG_ID, key));
    files.set(`checkpoint/${size}`, checkpointOf(log, size, undefined, signers));
  }
  return files;
}

function replaced(size: number, ...keys: TestKey[]): Files {
  return signedBy(HONEST.map(([at, honest]) => [at, at === size ? keys : honest] as const));
}

async function outcome(files: Files, ...keys: TestKey[]): Promise<AuditResult> {
  return await auditFiles(files, trust(...keys));
}

describe("a log whose keys were rotated twice is proven", () => {
  test.each([
    ["the oldest key", [OLD]],
    ["the newest key", [NEWEST]],
    ["a key in between", [NEW]],
    ["all keys", [OLD, NEW, NEWEST]],
  ])("from %s alone", async (_, keys) => {
    const result = await outcome(signedBy(HONEST), ...keys);
    expect(result.findings.listed).toEqual([]);
    expect([exitOf(result), result.size, result.checkpoints]).toEqual([0, 22n, 5]);
    expect(result.learned).toHaveLength(3 - keys.length);
    if (keys.length < 3) expect(printResult(result)).toContain("the log has named a key");
  });
});

test("over HTTP too, unless the server keeps back the checkpoints that lead from key to key", async () => {
  const files = signedBy(HONEST);
  const server = await serveFiles(files, { sizes: HONEST.map(([size]) => size) });
  const standard = await serveFiles(files);
  try {
    const followed = await httpSource(server.url, {});
    const result = await auditSource(followed.source, trust(OLD));
    expect([exitOf(result), result.size, result.learned.length]).toEqual([0, 22n, 2]);
    const { source } = await httpSource(standard.url, {});
    await expect(auditSource(source, trust(OLD))).rejects.toThrow(/no checkpoint that a trusted/);
    expect(exitOf(await auditSource(source, trust(NEWEST)))).toBe(0);
  } finally {
    await server.close();
    await standard.close();
  }
});

test("a smaller checkpoint that only a learned key signed counts as witnessed", async () => {
  const files = replaced(22, OLD, NEWEST);
  const witness = testKey(71);
  const note = Buffer.from(files.get("checkpoint/18") ?? []).toString();
  const [text = ""] = note.split("\n\u2014");
  const line = cosign({ ...witness, name: "north" }, text, 1_764_000_000n);
  files.set("checkpoint/18", Buffer.from(note + line));
  const policy = parsePolicy(
    `witness n ${formatVkey("north", witness.publicKey, "cosignature")}\nquorum n\n`,
  );
  if ("problem" in policy) throw new Error(policy.problem);
  const { findings, witnessed } = await auditFiles(files, { ...trust(NEWEST), policy });
  expect([findings.count, witnessed?.size]).toEqual([0, 18n]);
});

test("a checkpoint past a key's retirement that rests on that key alone is found", async () => {
  for (const keys of [[OLD], [OLD, NEWEST]]) {
    const middle = await outcome(replaced(12, OLD), ...keys);
    expect(said(middle).codes).toEqual(["checkpoint-retired-key"]);
    expect(middle.findings.first?.path).toBe("checkpoint/12");
    const last = await outcome(replaced(22, OLD), ...keys);
    expect(said(last).codes).toEqual(["checkpoint-retired-key"]);
    expect(last.findings.first?.path).toBe("checkpoint/22");
  }
  // Beside one in force it does no harm.
  expect(exitOf(await outcome(replaced(12, OLD, NEW), OLD))).toBe(0);
});

test("the checkpoint that covers a retirement is the first that must not rest on the key", async () => {
  const files = signedBy([...HONEST, [10, [OLD]]]);
  expect((await outcome(files, OLD)).findings.listed).toEqual([]);
  const next = signedBy([...HONEST, [11, [OLD]]]);
  expect(said(await outcome(next, OLD)).codes).toEqual(["checkpoint-retired-key"]);
});

test("a key is not trusted below the entry that added it", async () => {
  const early = await outcome(replaced(5, NEW), OLD);
  expect(said(early).codes).toEqual(["checkpoint-untrusted"]);
  expect(early.findings.first?.path).toBe("checkpoint/5");
});

test("a key that no trusted checkpoint covers the addition of is followed by nobody", async () => {
  const files = replaced(9, NEW);
  const result = await outcome(files, OLD);
  expect([result.size, said(result).codes]).toEqual([5n, ["checkpoint-untrusted"]]);
  expect(result.findings.count).toBe(4);
});

test("a learned key's bad signature refuses the checkpoint", async () => {
  const files = signedBy(HONEST);
  const forged = { ...signer(LOG_ID, NEW), sign: (message: Uint8Array) => OLD.sign(message) };
  files.set("checkpoint/9", checkpointOf(log, 9, undefined, [signer(LOG_ID, OLD), forged]));
  expect(said(await outcome(files, OLD)).codes).toEqual(["checkpoint-signature"]);
});

test("a key that somebody slips into a bundle proves nothing", async () => {
  const evil = testKey(66);
  const entry = encodeEntry({
    at: NOW,
    body: body(evil, "added"),
    index: 6n,
    kind: "log_key",
    log: LOG_ID,
    prev: log.leaves[5] ?? new Uint8Array(32),
  });
  const files = signedBy([
    [9, [OLD]],
    [22, [evil]],
  ]);
  files.set(bundlePath(0n, 22), encodeBundle(log.entries.with(6, entry)));
  files.delete(bundlePath(0n, 9));
  files.set(bundlePath(0n, 9), encodeBundle(log.entries.slice(0, 9).with(6, entry)));
  const result = await outcome(files, OLD);
  expect(exitOf(result)).toBe(1);
  expect(said(result).codes).toContain("entry-altered");
  expect(result.findings.first?.index).toBe(6n);
});

/** What no honest service would have written, by the rule that it breaks. */
const RECEIPT = formatVkey(`${ORIGIN}/receipt`, NEW.publicKey);
const ABUSES: [string, string, (log: TestLog) => void][] = [
  ["log-key-order", "a key added twice", (log) => force(log, body(NEW, "added"), 2)],
  ["log-key-order", "the only key retired", (log) => force(log, body(OLD, "retired"))],
  [
    "log-key-order",
    "a key retired twice",
    (log) => {
      force(log, body(NEW, "added"));
      force(log, body(OLD, "retired"), 2);
    },
  ],
  [
    "log-key-order",
    "a second key retired that nobody added",
    (log) => {
      force(log, body(NEW, "added"));
      force(log, body(OLD, "retired"));
      force(log, body(NEWEST, "retired"));
    },
  ],
  [
    "log-key-form",
    "a receipt key for checkpoints",
    (log) => force(log, { ...body(NEW, "added"), vkey: RECEIPT }),
  ],
  [
    "log-key-form",
    "another log's key",
    (log) => force(log, { ...body(NEW, "added"), vkey: formatVkey("other", NEW.publicKey) }),
  ],
  [
    "log-key-form",
    "a witness's key",
    (log) =>
      force(log, {
        ...body(NEW, "added"),
        vkey: formatVkey(ORIGIN, NEW.publicKey, "cosignature"),
      }),
  ],
  ["log-key-form", "no key at all", (log) => force(log, { ...body(NEW, "added"), vkey: "no key" })],
];

function force(
  log: TestLog,
  said: Omit<ReturnType<typeof body>, "vkey"> & { vkey: string },
  times = 1,
): void {
  for (let i = 0; i < times; i += 1) log.force("log_key", said);
}

test.each(ABUSES)("%s: %s", async (code, _, write) => {
  const log = smallLog();
  write(log);
  const { codes, first } = said(await auditFiles(filesOf(log)));
  expect(first).toBe(BigInt(log.size - 1));
  // Where the key that signs this archive is retired by it, that is found as well.
  expect(codes.filter((other) => other !== "checkpoint-retired-key")).toEqual([code]);
});

test("keys for receipts are judged by themselves, and sign no checkpoint", async () => {
  const log = smallLog();
  const receipt = { ...body(NEW, "added"), purpose: "receipt", vkey: RECEIPT } as const;
  log.write("log_key", receipt);
  log.write("log_key", { ...receipt, state: "retired" });
  log.write("log_key", receipt);
  const result = await auditFiles(filesOf(log));
  expect(result.findings.listed).toEqual([]);
  expect(result.learned).toEqual([]);
});
