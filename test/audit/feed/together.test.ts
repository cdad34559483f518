/** What the service's own rules write behind acknowledgements is what the auditor's ask for, whatever comes. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { breakBody } from "../../../src/core/break.ts";
import { formatSignedComputeMs, parseSignedComputeMs } from "../../../src/core/charge.ts";
import {
  type AckMonth,
  compared,
  judgeAck,
  type Standing,
  type Stated,
  type Sum,
} from "../../../src/core/feed/acknowledgement.ts";
import { eventsOf } from "../../../src/core/feed/event.ts";
import { auditFiles, filesOf } from "../archive.ts";
import { account, decoded } from "../closing.ts";
import { card, line, SALT, TestLog } from "../log.ts";

const STEP = fc.record({
  kind: fc.constantFrom("usage", "ack", "ack", "accept"),
  consumer: fc.constantFrom("portal", "warehouse"),
  /** What the consumer has more of the first of its months than there is. */
  more: fc.constantFrom(0n, 0n, 1n, -1n),
  /** How many of the last entries it has not read. */
  behind: fc.constantFrom(0, 0, 2),
  finished: fc.constantFrom("2026-10-20T12:00:00.000Z", "2026-11-20T12:00:00.000Z"),
});

interface Consumer {
  upTo: number;
  months: AckMonth[];
  breaks: Map<string, Standing>;
}

test("whatever is acknowledged, one implementation writes what the other asks for", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 3, maxLength: 16 }), async (steps) => {
      const log = new TestLog();
      log.write("rate_card", card());
      log.write("account", account());
      const agent = log.enrol(2, [line("runner-a")]);
      const consumers = new Map<string, Consumer>();
      for (const { behind, consumer: name, finished, kind, more } of steps) {
        const none = { upTo: 0, months: [], breaks: new Map<string, Standing>() };
        const consumer = consumers.get(name) ?? none;
        consumers.set(name, consumer);
        if (kind === "usage") log.submit(agent, { finished });
        else if (kind === "ack") acknowledge(log, { name, consumer, more, behind });
        else accept(log, consumer);
      }
      const { findings } = await auditFiles(filesOf(log));
      expect(findings.listed).toEqual([]);
    }),
    { numRuns: 40 },
  );
});

interface Acknowledging {
  name: string;
  consumer: Consumer;
  more: bigint;
  behind: number;
}

function acknowledge(log: TestLog, { behind, consumer, more, name }: Acknowledging): void {
  const upTo = Math.max(consumer.upTo, log.size - behind);
  const counted = countedTo(log, upTo);
  const stated = Array.from(counted, ([billing_month, { computeMs, events }], at): Stated => {
    const wrong = at === 0 ? more : 0n;
    const compute_ms = formatSignedComputeMs(computeMs + wrong);
    return { billing_month, events: String(events + wrong), compute_ms };
  });
  const months = compared(stated, counted);
  const body = { by: "portal", consumer: name, months, salt: SALT, up_to: String(upTo) };
  const index = log.force("feed_ack", body);
  const standing = [...consumer.breaks.values()];
  const { ended, opened } = judgeAck(BigInt(index), months, consumer.months, standing);
  for (const each of ended) {
    resolve(log, each, { by: "service", reason: "came", ticket: "none", evidence: index });
    set(consumer, each, "healed");
  }
  for (const finding of opened) {
    const opening = log.force("break", breakBody(finding, SALT));
    const { month } = finding;
    consumer.breaks.set(month, { index: BigInt(opening), month, state: "open" });
  }
  Object.assign(consumer, { upTo, months });
}

function accept(log: TestLog, consumer: Consumer): void {
  for (const { index, state } of consumer.breaks.values()) {
    if (state !== "open") continue;
    resolve(log, index, { by: "p_1", reason: "known", ticket: "T", evidence: "" });
    set(consumer, index, "accepted");
  }
}

function resolve(
  log: TestLog,
  index: bigint,
  said: { by: string; reason: string; ticket: string; evidence: string },
): void {
  const outcome = said.evidence === "" ? "accepted" : "healed";
  log.force("break_resolved", { ...said, approval: "", break: String(index), outcome, salt: SALT });
}

function set({ breaks }: Consumer, index: bigint, state: Standing["state"]): void {
  for (const each of breaks.values()) {
    if (each.index === index) breaks.set(each.month, { ...each, state });
  }
}

function countedTo(log: TestLog, upTo: number): Map<string, Sum> {
  const { billing_from, platform, unique_id } = log.prefix.log;
  const instance = { billing_from, platform, unique_id };
  const sums = new Map<string, Sum>();
  for (const entry of log.entries.slice(0, upTo).map(decoded)) {
    for (const { data } of eventsOf(entry, instance)) {
      if (!("compute_ms" in data)) continue;
      const { computeMs, events } = sums.get(data.billing_month) ?? { events: 0n, computeMs: 0n };
      const more = parseSignedComputeMs(data.compute_ms);
      sums.set(data.billing_month, { events: events + 1n, computeMs: computeMs + more });
    }
  }
  return sums;
}
