/** What `admit` lets in of what others saw and of what controls did, judged by the auditor: no entry can please one alone. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { admit } from "../../src/core/admit.ts";
import type { Body, Kind } from "../../src/core/entry.ts";
import { Problem } from "../../src/core/problem.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { auditFiles, filesOf } from "./archive.ts";
import { SALT, TestLog } from "./log.ts";

const HASH = encodeBase64(new Uint8Array(32));
/** Around the instant of the entries, 2026-11-20T12:00. */
const instant = fc.constantFrom(
  ...["2026-10-31T23:59:59.999Z", "2026-11-20T11:59:59.999Z", "2026-11-20T12:00:00.000Z"],
  ...["2026-11-20T12:00:00.001Z", "2026-11-21T00:00:00.000Z"],
);
const day = fc.constantFrom("2026-02-28", "2026-11-19", "2026-11-20", "2026-11-21", "2027-01-01");
const few = fc.constantFrom("0", "1", "2");
const by = fc.constant("somebody");
const salt = fc.constant(SALT);
const hash = fc.constant(HASH);

/** Bodies of their shapes, whatever they say. */
const OFFERS: { [K in Kind]?: fc.Arbitrary<Body<K>> } = {
  coverage: fc.record({
    ...{ by, salt, from: instant, to: instant, jobs: few, jobs_sha256: hash, runner_id: few },
    source: fc.constant("gitlab"),
  }),
  break_resolved: fc.record({
    ...{ approval: fc.constant(""), by, salt, reason: by, ticket: by, break: fc.constant("1") },
    evidence: fc.constantFrom("", "0", "1"),
    outcome: fc.constantFrom("healed", "accepted", "corrected"),
  }),
  source_count: fc.record({
    ...{ by, salt, counted: fc.constant("0"), day, source: by, stated: few },
    kind: fc.constantFrom("quota", "pack"),
  }),
  access_digest: fc.record(
    { day, lines: few, lines_sha256: hash, missing: fc.constant("1"), salt },
    { requiredKeys: ["day", "lines", "lines_sha256", "salt"] },
  ),
  access_review: fc.record({
    ...{ by, salt, from: day, to: day, kept: few, list_sha256: hash },
    principals: fc.constantFrom("1", "2"),
  }),
  verification: fc.record({
    ...{ day, findings: few, from: few, salt, to: fc.constantFrom("0", "1"), version: by },
    outcome: fc.constantFrom("passed", "failed", "nothing"),
  }),
};

test.each(Object.keys(OFFERS) as Kind[])(
  "whatever %s is let in the auditor finds nothing in, and neither is ever idle",
  async (kind) => {
    const seen = { taken: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(OFFERS[kind] ?? fc.constant(undefined), async (body) => {
        if (body === undefined) throw new Error("no offers");
        const log = new TestLog();
        log.write("break", {
          ...{ code: "missing-report", detail: "", difference_ms: "60000", job_id: "9", kid: "" },
          ...{ fingerprint: HASH, month: "2026-11-01", namespace_id: "1", runner_id: "7" },
          ...{ salt: SALT, tracking: "hosted", usage: "" },
        });
        if (!isAdmitted(log, kind, body)) {
          seen.refused += 1;
          return;
        }
        seen.taken += 1;
        log.write(kind, body);
        const { findings } = await auditFiles(filesOf(log));
        expect(findings.listed).toEqual([]);
      }),
      { numRuns: 100, seed: 5 },
    );
    expect(Math.min(seen.taken, seen.refused)).toBeGreaterThan(0);
  },
);

function isAdmitted<K extends Kind>(log: TestLog, kind: K, body: Body<K>): boolean {
  try {
    admit(log.prefix, kind, body, log.at);
    return true;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}
