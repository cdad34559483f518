/** Months: what must come before a cut-off, and that a closed month's figures are those of the entries. */
import fc from "fast-check";
import { expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { auditFiles, filesOf, said } from "../archive.ts";
import { close, closedBody, codes, coverage, difference, pin, ready, start } from "../closing.ts";
import { type Agent, card, limit, line, pack, SALT, TestLog } from "../log.ts";

const FIRST = "2026-11-01";
const SECOND = "2026-12-01";

test("months with late usage, packs, corrections, overage and what ran over are proven to the last digit", async () => {
  const { log, agent } = start();
  log.write("quota", { ...limit("1", "1"), beyond: "bill" });
  log.write("quota", limit("2", "1"));
  log.write("pack", { ...pack("1"), minutes: "2", purchased_in: FIRST, expires_in: SECOND });
  const first = log.submit(agent, { namespace: "1", duration: "300000" });
  log.submit(agent, { namespace: "2", duration: "300000" });
  log.submit(agent, { namespace: "10", reason: "runner_system_failure" });
  const line = { entry: first, namespace_id: "1", project_id: "10", usage_month: FIRST };
  log.write("adjustment", adjustment(FIRST, { ...line, amount: "-1.500000" }));
  ready(log, FIRST, [agent]);
  close(log, FIRST);
  const late = { finished: "2026-11-30T23:59:59.999Z", duration: "90000" };
  log.submit(agent, { ...late, namespace: "1" });
  log.submit(agent, { ...late, namespace: "2" });
  log.write("adjustment", adjustment(SECOND, { ...line, amount: "-200000.000000" }));
  log.write("pack", { ...pack("2"), minutes: "1", purchased_in: FIRST, expires_in: SECOND });
  log.submit(agent, { namespace: "1", duration: "65001" });
  ready(log, SECOND, [agent]);
  close(log, SECOND);
  const { findings, open } = await auditFiles(filesOf(log, [20, log.size]));
  expect([findings.listed, open.listed]).toEqual([[], []]);
});

function adjustment(
  billing_month: string,
  line: Omit<Body<"adjustment">["lines"][number], "reverses">,
): Body<"adjustment"> {
  const why = { reason: "incident", ticket: "CASE-1" };
  const place = { approval: "", billing_month, by: "finance", credit_run: "", first_line: "0" };
  return { ...place, ...why, lines: [{ ...line, reverses: "" }], salt: SALT };
}

const MINUTES = fc.integer({ min: 0, max: 6 }).map(String);
const STEP = fc.record({
  kind: fc.constantFrom("usage", "usage", "late", "adjust", "quota", "pack", "close"),
  namespace: fc.constantFrom("1", "2", "10"),
  duration: fc.integer({ min: 1, max: 400_000 }).map(String),
  minutes: MINUTES,
  bills: fc.boolean(),
  cap: fc.constantFrom("", "0", "1", "2"),
});

test("whatever comes in whatever order, two implementations give one allocation", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 4, maxLength: 24 }), async (steps) => {
      const { log, agent } = start();
      const months = [FIRST, SECOND, "2027-01-01"];
      let version = 1;
      let usage = "";
      for (const { bills, cap, duration, kind, minutes, namespace } of [...steps, ...CLOSE]) {
        version += 1;
        const [month = ""] = months;
        const source_version = String(version);
        if (kind === "usage") usage = log.submit(agent, { duration, namespace: "1" });
        if (kind === "late" && month !== FIRST) {
          log.submit(agent, { duration, namespace, finished: "2026-11-20T12:00:00.000Z" });
        }
        if (kind === "adjust" && usage !== "") {
          const named = { entry: usage, namespace_id: "1", project_id: "10" };
          const posted = { usage_month: `${log.at.slice(0, 7)}-01`, amount: "-0.500001" };
          log.write("adjustment", adjustment(posted.usage_month, { ...named, ...posted }));
          usage = "";
        }
        if (kind === "quota") {
          const effective_from = new Date(Date.parse(log.at) + 1).toISOString();
          const terms = { ...limit(namespace, minutes, source_version), effective_from };
          log.write("quota", { ...terms, ...(bills && { beyond: "bill", cap }) });
        }
        if (kind === "pack") {
          const pack_id = `${namespace}-${minutes}`;
          const valid = { purchased_in: FIRST, expires_in: bills ? SECOND : "2027-02-01" };
          log.write("pack", {
            ...pack(source_version),
            ...valid,
            minutes,
            namespace_id: namespace,
            pack_id,
          });
        }
        if (kind === "close" && months.length > 1) {
          usage = "";
          ready(log, month, [agent]);
          close(log, month);
          months.shift();
        }
      }
      const { findings } = await auditFiles(filesOf(log));
      expect(findings.listed).toEqual([]);
    }),
    { numRuns: 25 },
  );
});

const CLOSE = [
  { kind: "close", namespace: "1", duration: "1", minutes: "1", bills: false, cap: "" },
] as const;

/** What an honest service would not have cut off. */
const MISSING: [string, (log: TestLog, agent: Agent) => void][] = [
  [
    "a key that has attested nothing since the month's end",
    (log, agent) => {
      log.attest(agent);
      log.at = "2026-12-05T00:00:00.000Z";
      log.write("coverage", coverage(FIRST, "7"));
    },
  ],
  [
    "a runner whose jobs the platform has listed with a gap",
    (log, agent) => {
      log.at = "2026-12-05T00:00:00.000Z";
      log.attest(agent);
      const whole = coverage(FIRST, "7");
      log.write("coverage", { ...whole, to: "2026-11-10T00:00:00.000Z" });
      log.write("coverage", { ...whole, from: "2026-11-10T00:00:00.001Z" });
    },
  ],
  [
    "an open hold",
    (log, agent) => {
      log.submit(agent, { duration: "2678400001" });
      ready(log, FIRST, [agent]);
    },
  ],
  [
    "an open conflict",
    (log, agent) => {
      log.submit(agent, { job: "1" });
      log.submit(agent, { job: "1", duration: "1" });
      ready(log, FIRST, [agent]);
    },
  ],
  [
    "an open break",
    (log, agent) => {
      log.write("break", difference(FIRST));
      ready(log, FIRST, [agent]);
    },
  ],
];

test.each(MISSING)("a month is not cut off past %s", async (_, write) => {
  const { log, agent } = start();
  write(log, agent);
  pin(log, FIRST);
  expect(await codes(log)).toEqual(["month-not-ready"]);
});

test("a month is not cut off past a namespace that nobody pays for", async () => {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  log.submit(agent);
  ready(log, FIRST, [agent]);
  const closing = pin(log, FIRST);
  const result = await auditFiles(filesOf(log));
  expect(said(result)).toEqual({ codes: ["month-not-ready"], first: BigInt(closing) });
});

test("months close one after the other, each once, and the first with all that was used", async () => {
  const skipped = start();
  skipped.log.submit(skipped.agent);
  ready(skipped.log, SECOND, [skipped.agent]);
  pin(skipped.log, SECOND);
  expect(await codes(skipped.log)).toEqual(["month-before"]);

  const { log, agent } = start();
  ready(log, FIRST, [agent]);
  const closing = pin(log, FIRST);
  ready(log, SECOND, [agent]);
  pin(log, SECOND);
  expect(await codes(log)).toEqual(["month-before"]);

  const twice = start();
  ready(twice.log, FIRST, [twice.agent]);
  close(twice.log, FIRST);
  const again = closedBody(twice.log, closing, FIRST);
  twice.log.write("month_closed", { ...again, closing: String(twice.log.size - 2) });
  expect(await codes(twice.log)).toContain("month-closed");
});

test("a month that is not over, or not the next, is not cut off, and only the last cut-off is withdrawn", async () => {
  const early = start();
  pin(early.log, FIRST);
  expect(await codes(early.log)).toContain("months-in-order");
  const { log, agent } = start();
  const first = pin(log, "2026-09-01");
  ready(log, FIRST, [agent]);
  log.force("month_closing", { approval: "", by: "finance", month: FIRST, salt: SALT });
  log.force("month_closing_withdrawn", { approval: "", by: "finance", closing: first, salt: SALT });
  const { findings } = await auditFiles(filesOf(log));
  expect(findings.byCode.get("months-in-order")).toBe(2);
});

test("a month that is closed is not withdrawn", async () => {
  const { log, agent } = start();
  ready(log, FIRST, [agent]);
  close(log, FIRST);
  const closing = String(log.size - 2);
  log.force("month_closing_withdrawn", { approval: "", by: "finance", closing, salt: SALT });
  expect(await codes(log)).toEqual(["months-in-order"]);
});

test.each<[string, (body: Body<"month_closed">) => Partial<Body<"month_closed">>]>([
  ["month-figures", () => ({ rollups_sha256: encodeBase64(new Uint8Array(32)) })],
  ["month-figures", () => ({ allocations_sha256: encodeBase64(new Uint8Array(32)) })],
  ["month-figures", () => ({ packs_sha256: encodeBase64(new Uint8Array(32)) })],
  ["month-figures", () => ({ accounts_sha256: encodeBase64(new Uint8Array(32)) })],
  ["month-figures", () => ({ allocations: "9" })],
  ["month-figures", ({ totals }) => ({ totals: { ...totals, jobs: "2" } })],
  ["month-figures", ({ totals }) => ({ totals: { ...totals, billable_compute_ms: "1.000000" } })],
  ["month-root", () => ({ root: encodeBase64(new Uint8Array(32)) })],
  ["month-closed", ({ closing }) => ({ size: closing })],
  ["month-closed", () => ({ month: SECOND })],
])("%s: a closed month that says otherwise is found (%#)", async (code, change) => {
  const { log, agent } = start();
  log.submit(agent);
  ready(log, FIRST, [agent]);
  const body = closedBody(log, pin(log, FIRST), FIRST);
  log.write("month_closed", { ...body, ...change(body) });
  expect(await codes(log)).toContain(code);
});
