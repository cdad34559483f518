import { createHash } from "node:crypto";
import fc from "fast-check";
import { expect, test } from "vitest";
import { formatComputeMs } from "../../../src/core/charge.ts";
import type { Entry } from "../../../src/core/entry.ts";
import { eventsOf, type FeedEvent, type Instance } from "../../../src/core/feed/event.ts";
import { eventId } from "../../../src/core/feed/id.ts";
import { creditsOf, minutesOf } from "../../../src/core/feed/quantity.ts";
import { computeMs } from "../../../src/core/unit.ts";
import { BILLING_FROM, FedLog } from "./log.ts";

const LOG = "00112233445566778899aabbccddeeff";
const INSTANCE: Instance = {
  platform: "dotcom",
  unique_id: "8d5ba6b2",
  billing_from: BILLING_FROM,
};

/** Of an entry of the ledger, by a hosted runner; what is withdrawn is of October. */
const told = (entry: Entry, instance = INSTANCE): FeedEvent[] =>
  eventsOf(entry, instance, { month: "2026-10-01", runnerId: "700" });

const only = (entry: Entry, instance = INSTANCE): FeedEvent => {
  const [event, ...more] = told(entry, instance);
  if (event === undefined || more.length > 0) throw new Error("not one event");
  return event;
};

test("an event's id is the version 5 UUID of its place, as an implementation of its own makes it", () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 16, maxLength: 16 }),
      fc.bigInt(0n, 2n ** 63n - 1n),
      fc.nat(127),
      (namespace, index, line) => {
        const digest = createHash("sha1").update(namespace).update(`${index}/${line}`).digest();
        const hex = Buffer.from(namespace).toString("hex");
        const id = eventId(hex, `${index}/${line}`);
        const [a, b, c, d, e] = id.split("-");
        expect([a?.length, b?.length, c?.length, d?.length, e?.length]).toEqual([8, 4, 4, 4, 12]);
        const bytes = Buffer.from(id.replaceAll("-", ""), "hex");
        expect([(bytes[6] ?? 0) >> 4, (bytes[8] ?? 0) >> 6]).toEqual([5, 0b10]);
        for (let i = 0; i < 16; i += 1) {
          const kept = i === 6 ? 0x0f : i === 8 ? 0x3f : 0xff;
          expect((bytes[i] ?? 0) & kept).toBe((digest[i] ?? 0) & kept);
        }
      },
    ),
  );
  expect(() => eventId("0a1b", "1/0")).toThrow("not the id of a log");
});

test("every event has CloudEvents' attributes, an id of its own, and a sequence that sorts as its place does", () => {
  const log = new FedLog(LOG);
  log.adjust("2026-11-01", {}, { amount: "2.500000" });
  log.credit(log.build());
  log.close("2026-10-01");
  const entries = log.written.map(({ entry }) => entry);
  const events = entries.flatMap((entry) => told(entry));
  expect(events.length).toBe(2 + 1 + 1 + 2);
  for (const event of events) {
    expect(event.specversion).toBe("1.0");
    expect(event.source).toBe(`/logs/${LOG}`);
    expect(event.type).toMatch(/^[a-z]+\.[a-z.]+[a-z_]+$/);
    expect(new Date(event.time).toISOString()).toBe(event.time);
    expect(event.datacontenttype).toBe("application/json");
    for (const name of Object.keys(event)) expect(name).toMatch(/^[a-z0-9]{1,20}$/);
    expect(JSON.parse(JSON.stringify(event))).toEqual(event);
  }
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  const sequences = events.map(({ sequence }) => sequence);
  expect(sequences.toSorted()).toEqual(sequences);
  expect(sequences[0]).toBe(`000000000000000000${sequences[0]?.[18]}.000`);
  // Told again, by whoever has the entries, it is the same to the last byte.
  const again = entries.flatMap((entry) => told(structuredClone(entry)));
  expect(JSON.stringify(again)).toBe(JSON.stringify(events));
});

test("billable usage has GitLab's fields, its exact charge, and the runner as its subject", () => {
  const log = new FedLog(LOG);
  const entry = log.build("hosted", { namespace: 7, duration: 100_001n });
  const event = only(entry);
  expect(event).toMatchObject({ type: "com.gitlab.billable_usage", time: entry.at });
  expect(event.data).toEqual({
    event_id: event.id,
    event_type: "ci_compute_minutes",
    unit_of_measure: "compute_minute",
    quantity: "0.555561111117",
    realm: "SaaS",
    timestamp: "2026-11-28T12:00:00.000Z",
    unique_instance_id: "8d5ba6b2",
    subject: "700",
    project_id: "10",
    namespace_id: "7",
    root_namespace_id: "7",
    billing_month: "2026-11-01",
    usage_month: "2026-11-01",
    compute_ms: "33333.666667",
    metadata: {
      feature_qualified_name: "ci_hosted_runners",
      job_id: "1",
      pipeline_id: "1",
      runner_uuid: "hosted",
      duration_ms: "100001",
      factor: "1/3",
      machine_type: "small",
    },
  });
  const realms = (["dedicated", "self_managed"] as const).map((platform) => {
    const { data } = only(entry, { ...INSTANCE, platform });
    return "realm" in data ? data.realm : undefined;
  });
  expect(realms).toEqual(["Dedicated", "SM"]);
});

test("nothing is told of usage that nobody pays for: before billing began, a customer's own, a reason, a factor of 0", () => {
  const log = new FedLog(LOG);
  const silent = [
    log.build("hosted", { finished: "2026-10-14T23:59:59.999Z" }),
    log.build("own"),
    log.build("hosted", { reason: "runner_system_failure" }),
    log.build("free"),
    log.build("hosted", { duration: 0n }),
  ];
  expect(silent.map((entry) => told(entry))).toEqual(silent.map(() => []));
  expect(told(log.build("hosted", { finished: "2026-10-15T00:00:00.000Z" }))).toHaveLength(1);
  const others = log.written.filter(({ entry }) => entry.kind !== "usage");
  expect(others.flatMap(({ entry }) => told(entry))).toEqual([]);
});

test("each line of a correction is an event, may be below zero, and names what it corrects and what it takes back", () => {
  const log = new FedLog(LOG);
  const usage = log.build();
  const credit = log.credit(usage);
  const back = log.credit(usage, `${credit.index}/0`);
  const lines = log.adjust("2026-11-01", { amount: "90000.000000" }, { amount: "-0.000001" });
  const [event] = told(credit);
  expect(event).toMatchObject({
    type: "example.minutebook.billable_usage_corrected",
    data: {
      event_type: "ci_compute_minutes_correction",
      quantity: "-1.000000000000",
      compute_ms: "-60000.000000",
      subject: "",
      timestamp: credit.at,
      metadata: { corrects: only(usage).id, reason: "goodwill", ticket: "INC-1" },
    },
  });
  expect(only(back).data).toMatchObject({
    metadata: { corrects: only(usage).id, reverses: event?.id },
  });
  const [more, less] = told(lines);
  expect(more?.data).toMatchObject({ quantity: "1.500000000000", project_id: "" });
  expect(less?.data).toMatchObject({ quantity: "-0.000000000017", compute_ms: "-0.000001" });
  for (const name of ["corrects", "reverses", "credit_run"]) {
    expect(more?.data).not.toHaveProperty(["metadata", name]);
  }
});

test("a month's cut-off, its withdrawal and its end are told, each naming the event that it is about", () => {
  const log = new FedLog(LOG);
  log.closeMonth("2026-10-01");
  const cutOff = log.written.at(-1)?.entry;
  if (cutOff === undefined) throw new Error("no entry");
  const withdrawn = only(log.withdraw(cutOff.index));
  const closed = log.close("2026-10-01");
  expect(only(cutOff).data).toEqual({ billing_month: "2026-10-01" });
  expect(withdrawn).toMatchObject({
    type: "example.minutebook.month_closing_withdrawn",
    data: { withdraws: only(cutOff).id },
  });
  expect(only(closed).data).toEqual({
    billing_month: "2026-10-01",
    closes: eventId(LOG, `${closed.index - 1n}/0`),
    totals: closed.body.totals,
  });
});

test("of a month that was over before billing began nothing is told, and of the one in which it began all", () => {
  const log = new FedLog(LOG);
  log.closeMonth("2026-10-01");
  const cutOff = log.written.at(-1)?.entry;
  if (cutOff === undefined) throw new Error("no entry");
  const markers = [cutOff, log.withdraw(cutOff.index), log.close("2026-10-01")];
  const from = (billing_from: string) =>
    markers.map((entry) => told(entry, { ...INSTANCE, billing_from }));
  expect(from("2026-11-01T00:00:00.000Z")).toEqual([[], [], []]);
  const events = from("2026-10-31T23:59:59.999Z");
  expect(events.map(({ length }) => length)).toEqual([1, 1, 1]);
  expect(events).toEqual(from("2026-01-01T00:00:00.000Z"));
});

test("credits are told where somebody said what one is, and change nothing else", () => {
  const entry = new FedLog(LOG).build();
  const plain = only(entry);
  const priced = only(entry, { ...INSTANCE, creditMinutes: 100n });
  expect(priced.data).toMatchObject({ metadata: { credits: "0.0100000000" } });
  expect(priced).toMatchObject(plain);
});

const amounts = fc.bigInt(1n, 10n ** 27n - 1n);

test("a quantity is within half of its last digit of the exact minutes, and never 0 for a charge that is not", () => {
  fc.assert(
    fc.property(fc.oneof(amounts, fc.bigInt(1n, 10_000n)), (amount) => {
      const text = minutesOf(amount);
      expect(text).toMatch(/^[0-9]+\.[0-9]{12}$/);
      const scaled = BigInt(text.replace(".", ""));
      expect(scaled).toBeGreaterThan(0n);
      // |scaled / 10¹² − amount / (6 · 10¹⁰)| ≤ 1 / (2 · 10¹²)
      const off = scaled * 60_000_000_000n - amount * 10n ** 12n;
      expect(2n * (off < 0n ? -off : off)).toBeLessThanOrEqual(60_000_000_000n);
      expect(minutesOf(-amount)).toBe(`-${text}`);
    }),
  );
});

test("halves of a last digit go to the even one", () => {
  // A credit of 5 · 10⁹ minutes makes one unit of 10⁻¹⁰ credits half a minute, exactly.
  const halves = [1n, 2n, 3n, 5n].map((quarters) =>
    creditsOf((quarters * 60_000_000_000n) / 4n, 5_000_000_000n),
  );
  expect(halves).toEqual(["0.0000000000", "0.0000000001", "0.0000000002", "0.0000000002"]);
  expect(creditsOf(-15_000_000_000n, 5_000_000_000n)).toBe("0.0000000000");
});

test("quantities that are added up drift, and exact charges do not: a third of a minute, three times", () => {
  const third = computeMs(20_000_000_000n);
  expect(formatComputeMs(computeMs(3n * third))).toBe("60000.000000");
  expect(3n * BigInt(minutesOf(third).replace(".", ""))).toBe(999_999_999_999n);
});
