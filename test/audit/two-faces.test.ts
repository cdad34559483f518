/** Servers and archives that show one thing at one look and another at the next. */
import { expect, test } from "vitest";
import { openCheckpoint } from "../../audit/archive/checkpoints.ts";
import { CannotLook } from "../../audit/finding.ts";
import { httpSource } from "../../audit/http/source.ts";
import { sha256, verifyNow } from "../../audit/native.ts";
import { exitOf, printResult } from "../../audit/print.ts";
import type { Source } from "../../audit/source.ts";
import { cosign } from "../../src/core/cosignature.ts";
import type { Body } from "../../src/core/entry.ts";
import { EMPTY_ROOT } from "../../src/core/hash.ts";
import { formatVkey, linesOf } from "../../src/core/note.ts";
import { type Policy, parsePolicy } from "../../src/core/policy.ts";
import { decodeUtf8, encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { EMPTY_EDGE, edgeRoot, grow } from "../../src/core/tile.ts";
import { type TestKey, testKey } from "../signing.ts";
import {
  auditSource,
  checkpointOf,
  type Files,
  filesOf,
  memorySource,
  said,
  signer,
  vkey,
} from "./archive.ts";
import { longLog } from "./honest.ts";
import { card, LOG_ID, line, SALT, TestLog } from "./log.ts";
import { serveFiles } from "./server.ts";

const EVIL = testKey(66);
const WITNESS = testKey(71);

function keyBody(key: TestKey, state: "added" | "retired" = "added"): Body<"log_key"> {
  const vkey = formatVkey(`test/${LOG_ID}`, key.publicKey);
  return { approval: "", by: "operator", purpose: "checkpoint", salt: SALT, state, vkey };
}

/** Of `builds` builds of this length, after the entries that some key is added by. */
function written(builds: number, duration: string, ...added: TestKey[]): TestLog {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(5, [line("runner-a")]);
  for (const key of added) log.force("log_key", keyBody(key));
  for (let i = 0; i < builds; i += 1) log.submit(agent, { job: String(1000 + i), duration });
  return log;
}

function cosigned(note: Uint8Array): Uint8Array {
  const text = decodeUtf8(note) ?? "";
  const north = { ...WITNESS, name: "north", sign: (m: Uint8Array) => WITNESS.sign(m) };
  return encodeUtf8(text + cosign(north, linesOf(text)?.text ?? "", 1_764_000_000n));
}

function north(): Policy {
  const vkey = formatVkey("north", WITNESS.publicKey, "cosignature");
  const policy = parsePolicy(`witness north ${vkey}\nquorum north\n`);
  if ("problem" in policy) throw new Error(policy.problem);
  return policy;
}

/** One archive in the first pass and another in all later ones, which look at the newest checkpoint again. */
function turning(first: Files, then: Files, newest: number): Source {
  let passes = 0;
  const now = (): Source => memorySource(passes > 1 ? then : first);
  return {
    read: async (path) => {
      if (path === `checkpoint/${newest}`) passes += 1;
      return await now().read(path);
    },
    list: (folder) => now().list(folder),
  };
}

test.each([
  ["with its signature alone", {}],
  ["with witnesses", { policy: north(), live: true }],
])(
  "a server without the log's key teaches none by entries that it makes up, %s",
  async (_, options) => {
    const genuine = checkpointOf(written(10, "5"), 14);
    const [bait, forged] = [written(21, "7", EVIL), written(22, "9")];
    const top = checkpointOf(forged, 26, undefined, [signer(LOG_ID, EVIL)]);
    const files = filesOf(bait, [14]).set("checkpoint/14", cosigned(genuine));
    let lists = 0;
    const server = await serveFiles(files, {
      lie: (path, answer) => {
        if (path === "checkpoint") answer.end(top);
        else if (path === "/v1checkpoints") {
          lists += 1;
          if (lists > 1) for (const [name, bytes] of filesOf(forged)) files.set(name, bytes);
          answer.end(JSON.stringify({ sizes: lists > 1 ? [] : ["14"] }));
        } else return false;
        return true;
      },
    });
    try {
      const { source } = await httpSource(server.url, {});
      const result = await auditSource(source, options);
      expect(exitOf(result)).toBe(1);
      expect(said(result).codes).toContain("checkpoint-root");
      expect(result.learned).toEqual([]);
    } finally {
      await server.close();
    }
  },
);

test("a key is learned only from entries that a trusted checkpoint's root covers", async () => {
  const log = written(10, "5", EVIL);
  const files = filesOf(log, [14, log.size]);
  files.set("checkpoint/14", checkpointOf(log, 14, new Uint8Array(32)));
  files.set(
    `checkpoint/${log.size}`,
    checkpointOf(log, log.size, undefined, [signer(LOG_ID, EVIL)]),
  );
  const result = await auditSource(memorySource(files));
  expect(said(result).codes).toEqual(["checkpoint-root", "checkpoint-untrusted"]);
  expect(result.learned).toEqual([]);
});

test("who learned a key from one tree is shown no other tree under it", async () => {
  const next = testKey(21);
  const log = written(10, "5", next);
  const other = written(12, "7", next);
  const files = filesOf(log, [12, log.size]);
  const top = checkpointOf(log, log.size, undefined, [signer(LOG_ID, next)]);
  expect(exitOf(await auditSource(memorySource(files.set(`checkpoint/${log.size}`, top))))).toBe(0);
  const forked = filesOf(other, [log.size]);
  const turned = checkpointOf(other, log.size, undefined, [signer(LOG_ID, next)]);
  forked.set(`checkpoint/${log.size}`, turned);
  const result = await auditSource(turning(files, forked, log.size));
  expect([exitOf(result), said(result).codes]).toEqual([1, ["checkpoint-kept"]]);
});

test("what an early pass found is not taken back by a later one", async () => {
  const next = testKey(21);
  const log = written(10, "5", next);
  const files = filesOf(log, [12, log.size]);
  files.set(
    `checkpoint/${log.size}`,
    checkpointOf(log, log.size, undefined, [signer(LOG_ID, next)]),
  );
  const spoilt = new Map(files).set("tile/0/000.p/13", new Uint8Array(13 * 32));
  const result = await auditSource(turning(spoilt, files, log.size));
  expect([exitOf(result), said(result).codes]).toEqual([1, ["tile-partial"]]);
  expect(result.learned).toHaveLength(1);
});

test("a log that names keys without an end is no verdict", async () => {
  const log = written(1, "5", ...Array.from({ length: 65 }, (_, i) => testKey(100 + i)));
  await expect(auditSource(memorySource(filesOf(log)))).rejects.toThrow(/more new keys/);
});

test("a witness speaks for the note whose root was compared, and for no other of that size", async () => {
  const [told, shown] = [written(20, "5"), written(20, "7")];
  const files = filesOf(shown, [10, 24]);
  let reads = 0;
  const source: Source = {
    ...memorySource(files),
    read: async (path) => {
      if (path === "checkpoint/10") reads += 1;
      const other = path === "checkpoint/10" && reads > 1;
      return other ? cosigned(checkpointOf(told, 10)) : files.get(path);
    },
  };
  const result = await auditSource(source, { policy: north(), live: true });
  expect([exitOf(result), said(result).codes, reads]).toEqual([1, ["quorum-missing"], 1]);
});

test("an adopted archive's root is held to the tree that was walked, and to no other", async () => {
  const [log, other] = [longLog(300), longLog(299)];
  other.force("conflict", { jws: "x", stands: "0" });
  const { edge } = grow(EMPTY_EDGE, other.leaves.slice(0, 300), sha256);
  const adoption = { by: "operator", reason: "lost", salt: SALT, size: "300" };
  log.write("archive_adopted", { ...adoption, root: encodeBase64(edgeRoot(edge, sha256)) });
  const files = filesOf(log);
  const tile = filesOf(other).get("tile/0/001.p/44") ?? new Uint8Array();
  let reads = 0;
  const source: Source = {
    ...memorySource(files),
    read: async (path) => {
      if (path === "tile/0/001.p/45") reads += 1;
      const padded = new Uint8Array(45 * 32);
      padded.set(tile);
      return path === "tile/0/001.p/45" && reads > 2 ? padded : files.get(path);
    },
  };
  expect(exitOf(await auditSource(source))).toBe(1);
});

test("what was found stays found when the rest cannot be looked at, and what was not is no finding", async () => {
  const log = longLog(600);
  const files = filesOf(log);
  const failing = (altered: Files): Source => ({
    ...memorySource(altered),
    read: async (path) => {
      if (path === "tile/entries/001") throw new CannotLook("the server answers 503");
      return altered.get(path);
    },
  });
  await expect(auditSource(failing(files))).rejects.toThrow("503");
  const result = await auditSource(failing(new Map(files).set("tile/0/000", new Uint8Array(8192))));
  expect([exitOf(result), result.missed]).toEqual([1, "the server answers 503"]);
  expect(printResult(result)).toContain("not looked at to the end: the server answers 503");
});

test.each<[string, Files, number | undefined, string]>([
  ["one that was kept", new Map(), 7, "checkpoint-kept"],
  [
    "one that does not hold",
    new Map([["checkpoint/7", spoiltNote()]]),
    undefined,
    "checkpoint-signature",
  ],
  [
    "none",
    new Map([["checkpoint/0", checkpointOf(longLog(7), 0, new Uint8Array(32))]]),
    undefined,
    "checkpoint-root",
  ],
])("an empty checkpoint beside %s is a finding", async (_, others, kept, code) => {
  const log = longLog(7);
  const files = new Map([["checkpoint/0", checkpointOf(log, 0, EMPTY_ROOT)], ...others]);
  const opened = openCheckpoint(checkpointOf(log, 7), { vkeys: [vkey()], verify: verifyNow });
  if (typeof opened === "string") throw new Error(opened);
  const held = kept === undefined ? [] : [{ name: "kept", checkpoint: opened }];
  const result = await auditSource(memorySource(files), { kept: held });
  expect([exitOf(result), said(result).codes]).toEqual([1, [code]]);
});

function spoiltNote(): Uint8Array {
  const forged = { ...signer(LOG_ID), sign: (message: Uint8Array) => EVIL.sign(message) };
  return checkpointOf(longLog(7), 7, undefined, [forged]);
}
