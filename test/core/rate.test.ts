import fc from "fast-check";
import { expect, test } from "vitest";
import { judge } from "../../src/core/judge.ts";
import { type Rating, rate } from "../../src/core/rate.ts";
import type { Report } from "../../src/core/report.ts";
import { History, kidOf, LONG_AGO, NOW, report } from "./history.ts";

/** A moment that is after every entry written at NOW. */
const LATER = "2026-11-21T00:00:00.000Z";

function running(): History {
  const history = new History();
  history.agent(1);
  history.card();
  return history;
}

function rated(history: History, usage: Partial<Report["usage"]> = {}): Rating {
  const judgement = judge(history.prefix, kidOf(1), report({ usage }), LATER);
  if (judgement.kind === "hold") throw new Error(judgement.code);
  return judgement.body;
}

function codeOf(history: History): string {
  const judgement = judge(history.prefix, kidOf(1), report(), NOW);
  return judgement.kind === "hold" ? judgement.code : "usage";
}

test("a minute on a small machine is a minute, and the body says by which card", () => {
  expect(rated(running())).toEqual({
    billable: true,
    billing_month: "2026-11-01",
    card: "3",
    class: "standard",
    compute_ms: "60000.000000",
    enrolment: "1",
    factor: "1/1",
    limit: "",
    machine_type: "small",
    not_billable: "",
    tracking: "hosted",
    usage_month: "2026-11-01",
  });
});

test.each([
  ["open_source", "small", "1/2"],
  ["open_source", "trial", "1/4"],
  ["open_source_fork", "large", "1/125"],
  ["gitlab_contribution", "large", "1/30"],
  ["standard", "large", "3/1"],
  ["constructor", "large", "3/1"],
])(
  "the lower of the class's and the machine's factor wins: %s on %s is %s",
  (name, type, factor) => {
    const history = new History();
    history.agent(1, [{ machine_type: type }]);
    history.card();
    history.limit({});
    history.classify({ class: name });
    expect(rated(history)).toMatchObject({ class: name, factor, machine_type: type });
  },
);

test("a machine type that the card does not name is rated under *, and without it not at all", () => {
  const history = new History();
  history.agent(1, [{ machine_type: "constructor" }]);
  history.card({ runner_factors: { small: "1" } });
  expect(codeOf(history)).toBe("no-rate");
  history.card({ runner_factors: { small: "1", "*": "2" }, effective_from: LATER });
  expect(rated(history, { finished_at: LATER })).toMatchObject({ factor: "2/1", card: "4" });
});

test("a share of monthly minutes names the limit that it was looked up in", () => {
  const history = running();
  history.classify({ class: "gitlab_contribution" });
  expect(rated(history)).toMatchObject({ factor: "1/1", limit: "" });
  const limit = history.limit({ monthly_minutes: "10000" });
  expect(rated(history)).toMatchObject({ factor: "1/30", limit });
});

test("with unlimited minutes, and with more than 300,000, the machine's factor stays", () => {
  const history = running();
  history.classify({ class: "gitlab_contribution" });
  const first = history.limit({ monthly_minutes: "0" });
  expect(rated(history)).toMatchObject({ factor: "1/1", limit: first });
  const source_version = "2";
  const second = history.limit({
    monthly_minutes: "600000",
    source_version,
    effective_from: LATER,
  });
  expect(rated(history, { finished_at: LATER })).toMatchObject({ factor: "1/1", limit: second });
});

test("a limit that no factor is a share of is not named", () => {
  const history = running();
  history.limit({});
  history.classify({ class: "open_source" });
  expect(rated(history)).toMatchObject({ factor: "1/2", limit: "" });
});

test("a failure that is not billable costs nothing, and no limit is looked up for it", () => {
  const history = running();
  history.limit({});
  history.classify({ class: "gitlab_contribution" });
  expect(
    rated(history, { failure_reason: "runner_system_failure", status: "failed" }),
  ).toMatchObject({
    billable: false,
    class: "gitlab_contribution",
    compute_ms: "0.000000",
    factor: "0/1",
    limit: "",
    not_billable: "failure_reason",
  });
  expect(rated(history, { failure_reason: "", status: "failed" }).billable).toBe(true);
  expect(rated(history, { failure_reason: "never_heard_of" }).billable).toBe(true);
});

test("the first reason that applies is named: self-managed, then before billing, then the failure", () => {
  const failed = { failure_reason: "runner_system_failure" };
  const billing_from = "2026-11-20T12:00:00.001Z";
  const history = new History({ billing_from });
  history.agent(1);
  history.card();
  expect(rated(history, failed).not_billable).toBe("before_billing_from");
  expect(rated(history).compute_ms).toBe("60000.000000");
  expect(rated(history, { ...failed, finished_at: billing_from }).not_billable).toBe(
    "failure_reason",
  );

  const own = new History({ billing_from });
  own.agent(1, [{ tracking: "self_managed" }]);
  own.card({ tracking: "self_managed" });
  expect(rated(own, failed)).toMatchObject({ not_billable: "self_managed", factor: "0/1" });
  expect(rated(own)).toMatchObject({ billable: false, compute_ms: "60000.000000" });
});

test("card, class, limit and machine type are those in force at the finish, not at the report", () => {
  const history = running();
  history.limit({});
  history.classify({ class: "open_source" });
  history.enrol(2, [{ effective_from: LATER, machine_type: "large" }]);
  history.card({ effective_from: LATER, project_factors: { best: "monthly_minutes/300000" } });
  history.classify({ effective_from: LATER, class: "best" });
  history.limit({ effective_from: LATER, source_version: "2", monthly_minutes: "3000" });

  expect(rated(history)).toMatchObject({ card: "3", factor: "1/2", machine_type: "small" });
  expect(rated(history, { finished_at: LATER })).toMatchObject({
    card: "7",
    class: "best",
    enrolment: "1",
    factor: "1/100",
    limit: "9",
    machine_type: "large",
  });
});

test("a change of machine type counts for the runner, whichever enrolment said it", () => {
  const history = running();
  history.agent(2, [{ effective_from: LATER, machine_type: "large", runner_id: "701" }]);
  const judgement = judge(
    history.prefix,
    kidOf(1),
    report({ usage: { finished_at: LATER } }),
    LATER,
  );
  if (judgement.kind === "hold") throw new Error(judgement.code);
  expect(judgement.runner).toMatchObject({ machine_type: "large", runner_id: "701" });
  expect(judgement.body.enrolment).toBe("1");
});

test("a class of another project and a limit of another namespace count for nobody else", () => {
  const history = running();
  history.classify({ project_id: "51", class: "open_source" });
  history.limit({ namespace_id: "8" });
  expect(rated(history).class).toBe("standard");
  history.classify({ class: "gitlab_contribution" });
  expect(rated(history).limit).toBe("");
});

test("zero milliseconds are one job of nothing", () => {
  expect(rated(running(), { duration_ms: "0" })).toMatchObject({
    billable: true,
    compute_ms: "0.000000",
  });
});

test("rating equals a naive one over lists, for random cards, classes and limits", () => {
  const day = fc.integer({ min: 1, max: 9 });
  const instant = (n: number): string => `2027-01-0${n}T00:00:00.000Z`;
  const factor = fc.constantFrom("0", "0.5", "1", "2/3", "0.008", "7");
  const line = fc.record({
    day,
    machine: factor,
    discount: fc.option(fc.oneof(factor, fc.constant("monthly_minutes/300000"))),
  });
  const limit = fc.record({ day, minutes: fc.constantFrom("0", "400", "10000", "900000") });
  const value = (text: string, minutes = 0): number => {
    const [a = "", b = "1"] = text.replace("monthly_minutes", String(minutes)).split("/");
    return Number(a) / Number(b);
  };
  fc.assert(
    fc.property(fc.array(line, { minLength: 1 }), fc.array(limit), day, (cards, limits, finish) => {
      const history = new History();
      history.agent(1);
      history.classify({ class: "special" });
      for (const { day: from, machine, discount } of cards) {
        history.card({
          effective_from: instant(from),
          runner_factors: { small: machine },
          project_factors: discount === null ? {} : { special: discount },
        });
      }
      limits.forEach(({ day: from, minutes }, i) => {
        const source_version = String(i);
        history.limit({ effective_from: instant(from), monthly_minutes: minutes, source_version });
      });

      const finished_at = instant(finish);
      const judgement = judge(
        history.prefix,
        kidOf(1),
        report({ usage: { finished_at } }),
        finished_at,
      );
      const card = cards.filter((one) => one.day <= finish).at(-1);
      if (card === undefined) {
        expect(judgement).toEqual({ kind: "hold", code: "no-rate" });
        return;
      }
      const minutes = Number(limits.filter((one) => one.day <= finish).at(-1)?.minutes ?? 0);
      const undefinedShare = card.discount === "monthly_minutes/300000" && minutes === 0;
      const discount =
        card.discount === null || undefinedShare ? Infinity : value(card.discount, minutes);
      const expected = Math.min(value(card.machine), discount) * 60_000;
      if (judgement.kind === "hold") throw new Error(judgement.code);
      expect(Number(judgement.body.compute_ms)).toBeCloseTo(expected, 5);
    }),
    { numRuns: 60 },
  );
});

test("a card that starts later rates nothing that finished before it", () => {
  const history = new History();
  history.agent(1);
  history.card({ effective_from: NOW });
  expect(() => rated(history, { finished_at: LONG_AGO })).toThrow("no-rate");
  expect(rated(history).card).toBe("3");
});

test("what comes to more than a log holds of one build has no rate", () => {
  const history = new History();
  history.agent(1);
  history.card({ runner_factors: { "*": "1000000" } });
  const longest = 10n ** 15n;
  const runner = { machine_type: "small", tracking: "hosted" } as const;
  const of = (duration: bigint) =>
    rate(history.prefix, report({ usage: { duration_ms: String(duration) } }), runner);
  expect(of(longest)).toBeUndefined();
  expect(of(longest - 1n)?.compute_ms).toBe("999999999999999000000.000000");
});
