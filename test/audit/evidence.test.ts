/** What others saw, and that controls were at work: each kind by its rule. */
import { expect, test } from "vitest";
import { breakBody } from "../../src/core/break.ts";
import type { Body } from "../../src/core/entry.ts";
import { BREAK_CODES, type BreakCode } from "../../src/core/evidence.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { coverage, difference, gap } from "./closing.ts";
import { card, limit, line, SALT, TestLog } from "./log.ts";

const HASH = encodeBase64(new Uint8Array(32));
const WHY = { approval: "", by: "finance", reason: "late", salt: SALT, ticket: "CASE-1" };
const DIGEST = { day: "2026-11-19", lines: "1", lines_sha256: HASH, salt: SALT };
const VERIFIED = {
  ...{ day: "2026-11-20", findings: "0", from: "0", outcome: "passed" as const },
  ...{ salt: SALT, to: "1", version: "1" },
};
const ENVIRONMENT = {
  ...{ dependencies_sha256: HASH, grants_sha256: HASH, salt: SALT, schema_sha256: HASH },
  ...{ triggers_sha256: HASH, version: "1" },
};
const REVIEW = {
  ...{ by: "operator", from: "2026-08-01", kept: "2", list_sha256: HASH },
  ...{ principals: "2", salt: SALT, to: "2026-11-19" },
};
const COUNT = {
  ...{ by: "platform", counted: "1", day: "2026-11-20", kind: "quota" as const },
  ...{ salt: SALT, source: "plan", stated: "2" },
};
const OCTOBER = "2026-10-01";
const COVERAGE = coverage(OCTOBER, "7");
const BREAK = difference(OCTOBER);

/** The index of the break is 1. */
function resolved(said: Partial<Body<"break_resolved">>): (log: TestLog) => void {
  return (log) => {
    log.write("break", BREAK);
    log.write("break_resolved", { ...WHY, break: "1", evidence: "", outcome: "accepted", ...said });
  };
}

/** A break, the entry that shows that it is over, `""` where none can, and one that shows something else. */
type Healing = [code: BreakCode, of: Partial<Body<"break">>, right: string, wrong: string];

function healings(log: TestLog): Healing[] {
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  const other = log.enrol(3, [line("runner-b")]);
  const usage = log.submit(agent, { job: "9" });
  const foreign = log.submit(other, { job: "8", uuid: "runner-b" });
  const lines = log.submit(agent, { job: "9" });
  const [waiting, delivered] = [log.attest(agent, "2", "1"), log.attest(agent)];
  const silent = log.attest(other);
  const counted = log.write("source_count", { ...COUNT, counted: "0" });
  const another = log.write("source_count", { ...COUNT, counted: "0", source: "crm" });
  const { kid } = agent;
  const { fingerprint } = differing();
  return [
    ["missing-report", {}, usage, "0"],
    ["missing-job", {}, usage, foreign],
    ["duration", {}, usage, lines],
    ["foreign-runner", {}, usage, delivered],
    ["other-namespace", {}, usage, counted],
    ["counter-gap", gap(OCTOBER, kid, "1"), usage, foreign],
    ["counter-gap", gap(OCTOBER, kid, "2"), lines, delivered],
    ["missing-attestation", { kid }, waiting, silent],
    ["undelivered", { kid }, delivered, waiting],
    ["source-count", { fingerprint }, counted, another],
    ["over-timeout", {}, "", usage],
    ["over-capacity", {}, "", usage],
    ["sudden-jump", {}, "", usage],
    ["clock-offset", { kid }, "", delivered],
  ];
}

/** The source of `COUNT` counts others; again, after an end. */
function differing(after?: bigint): Body<"break"> {
  const { day, kind, source } = COUNT;
  const again = after !== undefined && { after };
  const of = { about: { day, kind, source }, code: "source-count", ...again } as const;
  return breakBody({ ...of, detail: "", month: "2026-11-01", tracking: "hosted" }, SALT);
}

/** Opens each break for which an entry is chosen, and says that it heals. */
function healEach(log: TestLog, choose: (healing: Healing) => string, by = "service"): void {
  for (const [i, healing] of healings(log).entries()) {
    const [code, of] = healing;
    const evidence = choose(healing);
    if (evidence === "") continue;
    const index = log.write("break", { ...difference(OCTOBER, i), code, ...of });
    log.write("break_resolved", { ...WHY, by, break: index, evidence, outcome: "healed" });
  }
}

function elsewhere(code: BreakCode): [string, string, (log: TestLog) => void] {
  const write = (log: TestLog): void => {
    healEach(log, ([each, , , wrong]) => (each === code ? wrong : ""));
  };
  return ["break-form", `a ${code} that heals by an entry about something else`, write];
}

const HONEST: [string, (log: TestLog) => void][] = [
  ["coverage that was pulled twice", (log) => log.write("coverage", COVERAGE)],
  ["breaks that healed by what was missing", (log) => healEach(log, ([, , right]) => right)],
  [
    "what a source counts, and differs, is over, and differs again",
    (log) => {
      const evidence = log.write("source_count", { ...COUNT, counted: "0" });
      let after: bigint | undefined;
      for (let time = 0; time < 3; time += 1) {
        const index = log.write("break", differing(after));
        const healed = { ...WHY, by: "service", evidence, outcome: "healed" } as const;
        after = BigInt(log.write("break_resolved", { ...healed, break: index }));
      }
    },
  ],
  [
    "a break that somebody took on",
    (log) => {
      log.write("break", BREAK);
      log.write("break_assigned", { break: "1", by: "operator", owner: "p_one", salt: SALT });
    },
  ],
  [
    "a count of what stands",
    (log) => {
      log.write("quota", limit("1", "400"));
      log.write("source_count", COUNT);
    },
  ],
  [
    "digests of days",
    (log) => {
      log.write("access_digest", { ...DIGEST, day: "2026-11-17" });
      log.write("access_digest", DIGEST);
    },
  ],
  ["a review", (log) => log.write("access_review", REVIEW)],
  [
    "an environment that changed",
    (log) => {
      log.write("environment", ENVIRONMENT);
      log.write("environment", { ...ENVIRONMENT, version: "2" });
    },
  ],
  [
    "a day on which nothing was verified",
    (log) => {
      log.write("verification", { ...VERIFIED, day: "2026-11-19", outcome: "nothing", to: "0" });
      log.write("verification", { ...VERIFIED, outcome: "failed", findings: "3" });
    },
  ],
];

test.each(HONEST)("%s is proven", async (_, write) => {
  const log = new TestLog();
  write(log);
  const { findings, open } = await auditFiles(filesOf(log));
  expect([findings.listed, open.listed]).toEqual([[], []]);
});

const FALSE: [string, string, (log: TestLog) => void][] = [
  [
    "coverage-span",
    "coverage of no time",
    (log) => {
      log.write("coverage", { ...COVERAGE, to: COVERAGE.from });
    },
  ],
  [
    "coverage-span",
    "coverage of a time to come",
    (log) => {
      log.write("coverage", { ...COVERAGE, to: "2026-11-20T12:00:00.001Z" });
    },
  ],
  [
    "break-twice",
    "a break that is opened again",
    (log) => {
      log.write("break", BREAK);
      log.write("break", { ...BREAK, month: "2026-11-01" });
    },
  ],
  [
    "break-end",
    "a break that is resolved twice",
    (log) => {
      resolved({})(log);
      log.write("break_resolved", { ...WHY, break: "1", evidence: "", outcome: "accepted" });
    },
  ],
  [
    "break-end",
    "a resolved break that somebody takes on",
    (log) => {
      resolved({})(log);
      log.write("break_assigned", { break: "1", by: "operator", owner: "p_one", salt: SALT });
    },
  ],
  [
    "break-form",
    "a break about usage that is not there",
    (log) => {
      log.write("break", { ...BREAK, usage: "9" });
    },
  ],
  ["break-form", "a break that nothing has healed", resolved({ by: "service", outcome: "healed" })],
  [
    "break-form",
    "a break that is healed by a person",
    (log) => healEach(log, ([code, , right]) => (code === "duration" ? right : ""), "p_one"),
  ],
  ...BREAK_CODES.filter((code) => code !== "portal-difference").map(elsewhere),
  ["source-count", "a count of what does not stand", (log) => log.write("source_count", COUNT)],
  [
    "day-order",
    "a count of a day to come",
    (log) => {
      log.write("source_count", { ...COUNT, counted: "0", day: "2026-11-21" });
    },
  ],
  [
    "day-order",
    "a second digest of a day",
    (log) => {
      log.write("access_digest", DIGEST);
      log.write("access_digest", DIGEST);
    },
  ],
  [
    "day-order",
    "a digest of a day that is not over",
    (log) => {
      log.write("access_digest", { ...DIGEST, day: "2026-11-20" });
    },
  ],
  [
    "access-digest",
    "a digest of no line",
    (log) => {
      log.write("access_digest", { ...DIGEST, lines: "0" });
    },
  ],
  [
    "day-order",
    "a review of days to come",
    (log) => {
      log.write("access_review", { ...REVIEW, to: "2026-11-21" });
    },
  ],
  [
    "access-review",
    "a review that keeps more than there were",
    (log) => {
      log.write("access_review", { ...REVIEW, kept: "3" });
    },
  ],
  [
    "environment-same",
    "an environment that has not changed",
    (log) => {
      log.write("environment", ENVIRONMENT);
      log.write("environment", ENVIRONMENT);
    },
  ],
  [
    "day-order",
    "a second verification of a day",
    (log) => {
      log.write("verification", VERIFIED);
      log.write("verification", VERIFIED);
    },
  ],
  [
    "verification",
    "a verification of entries to come",
    (log) => {
      log.write("verification", { ...VERIFIED, to: "2" });
    },
  ],
  [
    "verification",
    "a verification that passed with findings",
    (log) => {
      log.write("verification", { ...VERIFIED, findings: "1" });
    },
  ],
];

test.each(FALSE)("%s: %s is found", async (code, _, write) => {
  const log = new TestLog();
  write(log);
  const { codes } = said(await auditFiles(filesOf(log)));
  expect(codes).toEqual([code]);
});
