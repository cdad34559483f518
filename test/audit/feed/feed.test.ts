/** What consumers of the feed acknowledge is counted again, and the differences that follow stand where they must. */
import { expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import { sha256 } from "../../../src/core/hash.ts";
import { canonical } from "../../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../../src/core/text.ts";
import { auditFiles, filesOf, said } from "../archive.ts";
import { account } from "../closing.ts";
import { card, line, SALT, TestLog } from "../log.ts";

const MONTH = "2026-11-01";
type Months = Body<"feed_ack">["months"];

/** Four builds, of which two are events: one was charged nothing, and one is the customer's own. */
function start(): TestLog {
  const log = new TestLog();
  log.write("rate_card", card());
  log.write("rate_card", card({ tracking: "self_managed" }));
  log.write("account", account());
  const agent = log.enrol(2, [line("runner-a")]);
  const own = log.enrol(3, [line("runner-own", { tracking: "self_managed" })]);
  const usage = log.submit(agent, { duration: "60000" });
  log.submit(agent, { duration: "1000" });
  log.submit(agent, { duration: "5", reason: "runner_system_failure" });
  log.submit(own, { duration: "9", uuid: "runner-own" });
  log.write("adjustment", {
    ...{ approval: "", by: "finance", salt: SALT, reason: "incident", ticket: "T" },
    ...{ billing_month: MONTH, credit_run: "", first_line: "0" },
    lines: [
      {
        ...{ amount: "-0.500001", entry: usage, namespace_id: "1", project_id: "10" },
        ...{ reverses: "", usage_month: MONTH },
      },
    ],
  });
  return log;
}

/** As the log counts it, and as the consumer has it. */
function counted(said: Partial<Months[number]> = {}): Months[number] {
  const [events, compute_ms] = ["3", "60999.499999"];
  const ours = { counted_events: events, counted_compute_ms: compute_ms };
  return { billing_month: MONTH, events, compute_ms, ...ours, ...said };
}

function ack(log: TestLog, months: Months, more: Partial<Body<"feed_ack">> = {}): string {
  const up_to = String(log.size);
  return log.force("feed_ack", {
    by: "portal",
    consumer: "portal",
    months,
    salt: SALT,
    up_to,
    ...more,
  });
}

function opening(
  by: string,
  events: string,
  compute_ms: string,
  difference_ms: string,
): Body<"break"> {
  const identity = { code: "portal-difference", tracking: "hosted" } as const;
  const about = { ack: by, billing_month: MONTH };
  return {
    ...{ ...identity, detail: `events ${events}, compute_ms ${compute_ms}`, difference_ms },
    fingerprint: encodeBase64(sha256(encodeUtf8(canonical({ about, ...identity })))),
    ...{
      job_id: "",
      kid: "",
      month: MONTH,
      namespace_id: "",
      runner_id: "",
      salt: SALT,
      usage: "",
    },
  };
}

function healed(found: string, evidence: string): Body<"break_resolved"> {
  const cause = { approval: "", by: "service", reason: "came", ticket: "none" };
  return { ...cause, break: found, evidence, outcome: "healed", salt: SALT };
}

async function codes(log: TestLog): Promise<string[]> {
  return said(await auditFiles(filesOf(log))).codes;
}

const MISSED = { events: "2", compute_ms: "-0.500001" };

/** A consumer that missed a build, and what has to stand behind that. */
function differing(log: TestLog): { by: string; found: string } {
  const by = ack(log, [counted(MISSED)]);
  return { by, found: log.force("break", opening(by, "-1", "-61000.000000", "-61000")) };
}

test("an acknowledgement of what the log counts, its differences, and their end are proven", async () => {
  const log = start();
  ack(log, [], { up_to: "3" });
  ack(log, [counted()]);
  const { found } = differing(log);
  ack(log, [counted(MISSED)]);
  const again = ack(log, [counted()]);
  log.force("break_resolved", healed(found, again));
  ack(log, [counted()], { consumer: "data-warehouse" });
  expect(await codes(log)).toEqual([]);
});

test("another difference ends the one before and opens anew", async () => {
  const log = start();
  const { found } = differing(log);
  const by = ack(log, [counted({ events: "4" })]);
  log.force("break_resolved", healed(found, by));
  log.force("break", opening(by, "1", "0.000000", "0"));
  expect(await codes(log)).toEqual([]);
});

test("a difference that two persons accepted is covered as long as it stays the same", async () => {
  const log = start();
  const { found } = differing(log);
  const accepted = {
    ...healed(found, ""),
    by: "p_1",
    reason: "known",
    outcome: "accepted",
  } as const;
  log.force("break_resolved", accepted);
  ack(log, [counted(MISSED)]);
  ack(log, [counted()]);
  const by = ack(log, [counted(MISSED)]);
  log.force("break", opening(by, "-1", "-61000.000000", "-61000"));
  expect(await codes(log)).toEqual([]);
});

const NONE = { counted_events: "0", counted_compute_ms: "0.000000" };

const FAULTS: [string, string, (log: TestLog) => void][] = [
  [
    "counts one event too many",
    "feed-counted",
    (log) => {
      ack(log, [counted({ events: "4", counted_events: "4" })]);
    },
  ],
  [
    "counts a digit too much",
    "feed-counted",
    (log) => {
      ack(log, [counted({ compute_ms: "60999.499998", counted_compute_ms: "60999.499998" })]);
    },
  ],
  [
    "counts what comes after it",
    "feed-counted",
    (log) => {
      ack(log, [counted()], { up_to: "8" });
    },
  ],
  [
    "is of entries that do not stand yet",
    "feed-ack",
    (log) => {
      ack(log, [counted()], { up_to: "100" });
    },
  ],
  [
    "goes back",
    "feed-ack",
    (log) => {
      ack(log, [counted()]);
      ack(log, [], { up_to: "1" });
    },
  ],
  [
    "leaves out a month that has events",
    "feed-ack",
    (log) => {
      ack(log, []);
    },
  ],
  [
    "lists a month twice",
    "feed-ack",
    (log) => {
      ack(log, [counted(), counted()]);
    },
  ],
  [
    "is in another one's name",
    "feed-ack",
    (log) => {
      ack(log, [counted()]);
      ack(log, [counted()], { by: "another" });
    },
  ],
  [
    "is by one name too many",
    "feed-ack",
    (log) => {
      for (let i = 0; i <= 100; i += 1) ack(log, [], { consumer: `c${i}`, up_to: "0" });
    },
  ],
  [
    "says more differences than one may",
    "feed-ack",
    (log) => {
      const early = Array.from({ length: 26 }, (_, i) => {
        const of = `${2021 + Math.floor(i / 12)}-${String(1 + (i % 12)).padStart(2, "0")}-01`;
        // Whether there are events is for another rule to say.
        return { ...counted({ events: "2" }), ...NONE, counted_events: "1", billing_month: of };
      });
      ack(log, [...early, counted()]);
    },
  ],
  [
    "is of a month that nothing is billed of",
    "feed-ack",
    (log) => {
      ack(log, [{ ...counted(), ...NONE, billing_month: "0001-01-01" }, counted()]);
    },
  ],
  [
    "is of a month that has not begun",
    "feed-ack",
    (log) => {
      ack(log, [
        counted(),
        { ...NONE, billing_month: "2027-01-01", events: "0", compute_ms: "0.000000" },
      ]);
    },
  ],
  [
    "differs, and nothing opens",
    "feed-break",
    (log) => {
      ack(log, [counted(MISSED)]);
    },
  ],
  [
    "differs, and something else stands behind it",
    "feed-break",
    (log) => {
      ack(log, [counted(MISSED)]);
      ack(log, [counted(MISSED)]);
    },
  ],
  [
    "opens a difference of another amount",
    "feed-break",
    (log) => {
      const by = ack(log, [counted(MISSED)]);
      log.force("break", opening(by, "-1", "-60000.000000", "-60000"));
    },
  ],
  [
    "agrees, and a difference opens all the same",
    "feed-break",
    (log) => {
      const by = ack(log, [counted()]);
      log.force("break", opening(by, "0", "0.000000", "0"));
    },
  ],
  [
    "agrees at last, and nothing ends",
    "feed-break",
    (log) => {
      differing(log);
      ack(log, [counted()]);
    },
  ],
  [
    "is healed though nobody agreed",
    "feed-break",
    (log) => {
      const { by, found } = differing(log);
      log.force("break_resolved", healed(found, by));
    },
  ],
  [
    "has the same difference again, and opens it again",
    "feed-break",
    (log) => {
      differing(log);
      differing(log);
    },
  ],
];

test.each(FAULTS)("what %s is found", async (_, code, write) => {
  const log = start();
  write(log);
  expect(await codes(log)).toContain(code);
});
