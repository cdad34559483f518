import { expect, test } from "vitest";
import { exitOf } from "../../audit/print.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { account, coverage } from "./closing.ts";
import {
  type Agent,
  card,
  enrolment,
  LONG_AGO,
  limit,
  line,
  NOW,
  pack,
  SALT,
  TestLog,
} from "./log.ts";

const LATER = "2026-11-20T12:00:00.001Z";
const BY = { approval: "", by: "finance", salt: SALT };

function classOf(class_: string, effective_from: string) {
  return { ...BY, class: class_, effective_from, project_id: "1", source: "s" };
}

function service(version: string, seed = 0) {
  return { schema_sha256: encodeBase64(new Uint8Array(32).fill(seed)), salt: SALT, version };
}

/** What no honest service would have written, by the rule that it breaks. */
const CASES: [string, string, (log: TestLog, agent: Agent) => void][] = [
  [
    "two-trackings",
    "a runner enrolled a second time with another tracking",
    (log) => {
      const again = line("runner-a", { tracking: "self_managed", effective_from: LATER });
      log.force("enrolment", enrolment({ runners: [again] }));
    },
  ],
  [
    "two-trackings",
    "a runner with two trackings in one enrolment",
    (log) => {
      const runners = [line("x"), line("x", { tracking: "self_managed", effective_from: LATER })];
      log.force("enrolment", enrolment({ runners }));
    },
  ],
  [
    "namespaces-needed",
    "a group runner without namespaces",
    (log) => {
      log.force("enrolment", enrolment({ runners: [line("x", { runner_type: "group" })] }));
    },
  ],
  [
    "namespaces-needed",
    "an instance runner with namespaces",
    (log) => {
      log.force("enrolment", enrolment({ namespaces: ["1"] }));
    },
  ],
  [
    "starts-in-the-past",
    "a second machine type that reaches back",
    (log) => {
      log.force("enrolment", enrolment({ runners: [line("runner-a", { effective_from: NOW })] }));
    },
  ],
  [
    "starts-in-the-past",
    "a second card that reaches back",
    (log) => {
      log.force("rate_card", card({ effective_from: NOW }));
    },
  ],
  [
    "starts-in-the-past",
    "a second class that reaches back",
    (log) => {
      log.force("project_class", classOf("oss", LONG_AGO));
      log.force("project_class", classOf("fork", NOW));
    },
  ],
  [
    "starts-in-the-past",
    "a second limit that reaches back",
    (log) => {
      log.force("quota", limit("1", "400"));
      log.force("quota", { ...limit("1", "500", "2"), effective_from: NOW });
    },
  ],
  [
    "stale-source-version",
    "an older version of a limit",
    (log) => {
      log.force("quota", limit("1", "400", "2"));
      log.force("quota", { ...limit("1", "500", "2"), effective_from: LATER });
    },
  ],
  [
    "cap-without-bill",
    "a cap where everything stops at the limit",
    (log) => {
      log.force("quota", { ...limit("1", "400"), cap: "1" });
    },
  ],
  [
    "stale-source-version",
    "an older version of a pack, of its own source",
    (log) => {
      log.force("pack", pack("2"));
      log.force("pack", { ...pack("1"), source: "another" });
      log.force("pack", pack("2"));
    },
  ],
  [
    "another-pack",
    "a pack that goes over to another namespace",
    (log) => {
      log.force("pack", pack("1"));
      log.force("pack", { ...pack("2"), namespace_id: "2" });
    },
  ],
  [
    "another-pack",
    "a pack that was bought in another month after all",
    (log) => {
      log.force("pack", pack("1"));
      log.force("pack", { ...pack("2"), purchased_in: "2026-10-01" });
    },
  ],
  [
    "pack-months",
    "a pack that expires before it is bought",
    (log) => {
      log.force("pack", { ...pack("1"), expires_in: "2026-10-01" });
    },
  ],
  [
    "invalid-factor",
    "a factor over zero",
    (log) => {
      log.force("rate_card", card({ effective_from: LATER, runner_factors: { "*": "1/0" } }));
    },
  ],
  [
    "invalid-factor",
    "a machine's factor that is a share of minutes",
    (log) => {
      const runner_factors = { "*": "monthly_minutes/300000" };
      log.force("rate_card", card({ effective_from: LATER, runner_factors }));
    },
  ],
  [
    "invalid-factor",
    "a class's factor over zero",
    (log) => {
      log.force("rate_card", card({ effective_from: LATER, project_factors: { oss: "1/0" } }));
    },
  ],
  [
    "project-factors-not-applicable",
    "a discount for a customer's own runners",
    (log) => {
      const project_factors = { oss: "0.5" };
      log.force("rate_card", card({ tracking: "self_managed", project_factors }));
    },
  ],
  [
    "service-order",
    "a service that announces itself again",
    (log) => {
      log.force("service", service("1.10.0"));
      log.force("service", service("1.10.0"));
    },
  ],
  [
    "service-order",
    "an older service after a newer one",
    (log) => {
      log.force("service", service("1.10.0"));
      log.force("service", service("1.9.0"));
    },
  ],
];

test.each(CASES)("%s: %s", async (code, _, write) => {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  write(log, agent);
  const result = await auditFiles(filesOf(log));
  expect(said(result)).toEqual({ codes: [code], first: BigInt(log.size - 1) });
  expect(exitOf(result)).toBe(1);
});

test("a withdrawn closing no longer moves usage, and the month may close again", async () => {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  log.write("account", account());
  log.attest(agent);
  log.write("coverage", coverage("2026-10-01", "7"));
  const closing = log.write("month_closing", { ...BY, month: "2026-10-01" });
  log.write("month_closing_withdrawn", { ...BY, closing });
  log.submit(agent, { finished: "2026-10-31T23:59:59.999Z" });
  log.write("month_closing", { ...BY, month: "2026-10-01" });
  log.submit(agent, { finished: "2026-10-31T23:59:59.999Z" });
  const { findings, months } = await auditFiles(filesOf(log));
  expect(findings.listed).toEqual([]);
  expect(months.map(({ billing_month }) => billing_month)).toEqual(["2026-10-01", "2026-11-01"]);
});

test("a service announces each version and schema that it comes to", async () => {
  const log = new TestLog();
  for (const version of ["1.9.0", "1.10.0", "2.0.0"]) log.force("service", service(version));
  log.force("service", service("2.0.0", 1));
  expect((await auditFiles(filesOf(log))).findings.listed).toEqual([]);
});

test("under dual control a control entry without an approval is a finding", async () => {
  const log = new TestLog(undefined, { control: "dual" });
  log.write("rate_card", card());
  expect(said(await auditFiles(filesOf(log)))).toEqual({ codes: ["approval-required"], first: 1n });
});

test("an entry that names an approval which is none is a finding", async () => {
  const log = new TestLog(undefined, { control: "dual" });
  log.write("rate_card", card({ approval: "0" }));
  expect(said(await auditFiles(filesOf(log)))).toEqual({ codes: ["approval-unknown"], first: 1n });
});
