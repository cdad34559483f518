import { expect, test } from "vitest";
import { auditRange, type RangeResult } from "../../audit/fetch/range.ts";
import { CannotLook } from "../../audit/finding.ts";
import { sha256, verifyNow } from "../../audit/native.ts";
import { exitOf, printRange, rangeJson } from "../../audit/print.ts";
import type { Source } from "../../audit/source.ts";
import { memoryPiles } from "../../audit/tally/memory.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { formatVkey } from "../../src/core/note.ts";
import { parsePolicy } from "../../src/core/policy.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { testKey } from "../signing.ts";
import { filesOf, memorySource, vkey } from "./archive.ts";
import { longLog } from "./honest.ts";
import { LOG_ID, NOW, OTHER_LOG_ID, type TestLog } from "./log.ts";

async function ranged(
  source: Source,
  first: bigint,
  last?: bigint,
  said: Partial<Parameters<typeof auditRange>[1]> = {},
): Promise<RangeResult> {
  const tools = { hash: sha256, verify: verifyNow, openPiles: memoryPiles, now: 1_764_000_000n };
  const given = { log: LOG_ID, vkeys: [vkey()], policy: undefined, range: { first, last } };
  return await auditRange(source, { ...tools, ...given, ...said });
}

/** Puts an entry of a later version's kind at the log's end, as it says that it stands. */
function putUnknown(log: TestLog, said: Record<string, Json> = {}): void {
  const place = { index: String(log.size), log: LOG_ID, prev: encodeBase64(log.head) };
  const entry = { at: NOW, body: { x: "y" }, kind: "future_kind", v: "1", ...place, ...said };
  log.put(encodeUtf8(canonical(entry)));
}

test("an entry of an unknown kind leaves a range open, in its place", async () => {
  const log = longLog(9);
  putUnknown(log);
  const result = await ranged(memorySource(filesOf(log)), 9n);
  expect([exitOf(result), result.open.first?.index]).toEqual([2, 9n]);
  expect(printRange(result)).toContain("OPEN: 0 findings; 1 could not be judged");
  expect(rangeJson(result)).toMatchObject({ exit: 2, open: { count: 1 }, findings: { count: 0 } });
  expect(exitOf(await ranged(memorySource(filesOf(log)), 8n, 8n))).toBe(0);
});

test.each([
  ["entry-swapped", { index: "777" }],
  ["entry-foreign", { log: OTHER_LOG_ID }],
  ["entry-link", { prev: encodeBase64(new Uint8Array(32)) }],
])("%s: an entry of an unknown kind is held to its place in a range too", async (code, said) => {
  const log = longLog(9);
  putUnknown(log, said);
  const { findings, ...result } = await ranged(memorySource(filesOf(log)), 9n);
  expect([...findings.byCode.keys()]).toEqual([code]);
  expect(exitOf({ findings, ...result })).toBe(1);
});

test("what was found in a range stays found when the rest cannot be looked at", async () => {
  const log = longLog(255);
  putUnknown(log, { log: OTHER_LOG_ID });
  while (log.size < 600) log.force("conflict", { jws: "x", stands: "0" });
  const failing: Source = {
    ...memorySource(filesOf(log)),
    read: async (path) => {
      if (path === "tile/entries/001") throw new CannotLook("the server answers 503");
      return filesOf(log).get(path);
    },
  };
  const result = await ranged(failing, 200n);
  expect([exitOf(result), result.limits]).toEqual([
    1,
    ["not looked at to the end: the server answers 503"],
  ]);
  await expect(ranged(failing, 300n)).rejects.toThrow("503");
});

test("a range past the checkpoint is no verdict, unless the checkpoint is at fault already", async () => {
  const source = memorySource(filesOf(longLog(9)));
  await expect(ranged(source, 9n)).rejects.toThrow("and not all of the range");
  const witness = formatVkey("north", testKey(71).publicKey, "cosignature");
  const policy = parsePolicy(`witness n ${witness}\nquorum n\n`);
  if ("problem" in policy) throw new Error(policy.problem);
  const result = await ranged(source, 9n, undefined, { policy });
  expect([exitOf(result), [...result.findings.byCode.keys()]]).toEqual([1, ["quorum-missing"]]);
});
