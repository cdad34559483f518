import { expect, test } from "vitest";
import { CannotLook } from "../../audit/finding.ts";
import { exitOf, printResult, resultJson } from "../../audit/print.ts";
import { canonical } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { bundlePath } from "../../src/core/tile.ts";
import { auditFiles, filesOf, said, vkey } from "./archive.ts";
import { honestLog } from "./honest.ts";
import { card, NOW, OTHER_LOG_ID, SALT, TestLog } from "./log.ts";

test("an honest log with entries of every kind is proven", async () => {
  const { log } = honestLog();
  const result = await auditFiles(filesOf(log, [0, 1, 7, log.size]));
  expect(result.findings.listed).toEqual([]);
  expect(result.open.listed).toEqual([]);
  expect(exitOf(result)).toBe(0);
  expect(result.size).toBe(BigInt(log.size));
  expect(result.checkpoints).toBe(4);
  expect(printResult(result)).toContain(`PROVEN: all ${log.size} entries`);
  expect(JSON.stringify(resultJson(result))).toContain('"exit":0');
});

test("what the log comes to is said by month and tracking, exactly", async () => {
  const { log } = honestLog();
  const { months } = await auditFiles(filesOf(log));
  const fork = 60_000_000_000n / 30n;
  expect(months).toEqual([
    // The build of October came after October's closing.
    {
      billing_month: "2026-11-01",
      tracking: "hosted",
      jobs: 6n,
      duration: 60_001n + 3n + 4n * 60_000n,
      compute: 60_001_000_000n + 1_500_000n + fork + 2n * 60_000_000_000n,
      billable: 60_001_000_000n + 1_500_000n + fork + 2n * 60_000_000_000n,
      adjustment: 0n,
    },
    {
      billing_month: "2026-11-01",
      tracking: "self_managed",
      jobs: 1n,
      duration: 60_000n,
      compute: 60_000_000_000n,
      billable: 0n,
      adjustment: 0n,
    },
  ]);
});

test("counters that an agent attested and the log lacks are information, not a finding", async () => {
  const { log, agent, other } = honestLog();
  log.attest(other, "5");
  const result = await auditFiles(filesOf(log));
  expect(exitOf(result)).toBe(0);
  const mine = result.keys.find(({ kid }) => kid === agent.kid);
  expect(mine).toMatchObject({ attested: 7n, missing: 0n, seen: 9n, malformed: 2n, rejected: 1n });
  const theirs = result.keys.find(({ kid }) => kid === other.kid);
  expect(theirs).toMatchObject({ attested: 5n, missing: 3n, seen: 2n });
  expect(printResult(result)).toContain(`${other.kid}: 3 of 5 not on the log`);
});

test("entries past the largest checkpoint are not covered, and that is said", async () => {
  const { log } = honestLog();
  const files = filesOf(log, [5, log.size]);
  files.delete(`checkpoint/${log.size}`);
  const result = await auditFiles(files);
  expect(exitOf(result)).toBe(2);
  expect(result.uncovered).toBe(BigInt(log.size - 5));
  expect(printResult(result)).toContain(`not covered: ${log.size - 5} entries`);
});

test("an entry of an unknown kind is never a pass, and its place is checked all the same", async () => {
  const { log } = honestLog();
  const index = log.size;
  const prev = encodeBase64(log.head);
  const entry = {
    at: NOW,
    body: {},
    index: `${index}`,
    kind: "opening_balance",
    log: log.id,
    prev,
    v: "1",
  };
  log.put(encodeUtf8(canonical(entry)));
  const result = await auditFiles(filesOf(log));
  expect(result.findings.count).toBe(0);
  expect(result.open.first).toMatchObject({ code: "unknown-kind", index: BigInt(index) });
  expect(exitOf(result)).toBe(2);
  log.put(encodeUtf8(canonical({ ...entry, index: `${index + 1}` })));
  expect(said(await auditFiles(filesOf(log))).codes).toEqual(["entry-link"]);
});

test("without a trusted key of the log nothing is verified", async () => {
  const { log } = honestLog();
  const files = filesOf(log);
  await expect(auditFiles(files, { vkeys: [] })).rejects.toThrow(CannotLook);
  await expect(auditFiles(files, { vkeys: [vkey(OTHER_LOG_ID)] })).rejects.toThrow(CannotLook);
});

test("an empty log, an empty folder and foreign checkpoints prove nothing", async () => {
  await expect(auditFiles(new Map())).rejects.toThrow(CannotLook);
  await expect(auditFiles(filesOf(new TestLog(), [0]))).rejects.toThrow("the log is empty");
  const foreign = filesOf(new TestLog(OTHER_LOG_ID));
  await expect(auditFiles(foreign)).rejects.toThrow("no checkpoint that a trusted key");
});

test("entry 0 must be the log's own, and no other entry may be", async () => {
  const log = new TestLog();
  log.force("log", {
    billing_from: NOW,
    control: "single",
    duration_cap_ms: "1",
    platform: "dotcom",
    salt: SALT,
    skew_ms: "1",
    unique_id: "x",
  });
  expect(said(await auditFiles(filesOf(log)))).toEqual({ codes: ["log-misplaced"], first: 1n });
});

test("time never runs backwards from entry to entry", async () => {
  const { log } = honestLog();
  log.at = "2026-11-20T11:59:59.999Z";
  log.force("service", {
    schema_sha256: encodeBase64(new Uint8Array(32)),
    salt: SALT,
    version: "2",
  });
  const result = await auditFiles(filesOf(log));
  expect(said(result)).toEqual({ codes: ["entry-time"], first: BigInt(log.size - 1) });
});

test("an instant of the future is one finding, however many entries follow", async () => {
  const { log } = honestLog();
  const { at } = log;
  for (const each of ["2126-11-20T12:00:00.000Z", at, at, at]) {
    log.at = each;
    const schema_sha256 = encodeBase64(new Uint8Array(32));
    log.force("service", { schema_sha256, salt: SALT, version: String(log.size) });
  }
  const result = await auditFiles(filesOf(log));
  expect(said(result)).toEqual({ codes: ["entry-time"], first: BigInt(log.size - 3) });
  expect(result.findings.count).toBe(1);
});

test("the first finding is the one of the lowest index, and the count goes on past the listing", async () => {
  const log = new TestLog();
  for (let i = 0; i < 400; i += 1) log.force("conflict", { jws: `x${i}`, stands: "0" });
  const result = await auditFiles(filesOf(log));
  expect(result.findings.count).toBe(400);
  expect(result.findings.listed).toHaveLength(100);
  expect(result.findings.first?.index).toBe(1n);
  expect(printResult(result)).toContain("and 300 more");
});

test("progress is told after every bundle", async () => {
  const log = new TestLog();
  for (let i = 0; i < 299; i += 1) log.force("conflict", { jws: `x${i}`, stands: "0" });
  const told: [bigint, bigint][] = [];
  await auditFiles(filesOf(log), { onProgress: (...seen) => told.push(seen) });
  expect(told).toEqual([
    [256n, 300n],
    [300n, 300n],
  ]);
});

test("what stands in an archive cannot steer the terminal", async () => {
  const log = new TestLog();
  log.write("rate_card", card({ runner_factors: { "\u009b2J": "1/0" } }));
  const text = printResult(await auditFiles(filesOf(log)));
  expect(text).not.toContain("\u009b");
  expect(text).toContain("invalid-factor");
});

test("a log whose files lie where a full bundle took the partial one's place is read from it", async () => {
  const log = new TestLog();
  for (let i = 0; i < 299; i += 1) log.force("attestation", { jws: `x${i}` });
  const files = filesOf(log, [100, log.size]);
  files.delete("checkpoint/300");
  for (const path of [...files.keys()]) if (path.endsWith(".p/100")) files.delete(path);
  const result = await auditFiles(files);
  expect(result.size).toBe(100n);
  expect(result.uncovered).toBe(200n);
  expect(said(result).codes).toEqual(["jws-malformed"]);
  expect(files.has(bundlePath(0n))).toBe(true);
});
