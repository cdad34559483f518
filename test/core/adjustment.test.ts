import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type AdjustedUsage,
  assertLeft,
  assertLines,
  type MonthFigures,
  type Standing,
  type StandingLine,
  scopeName,
  scopesOf,
} from "../../src/core/adjustment.ts";
import { formatSignedComputeMs } from "../../src/core/charge.ts";
import type { AdjustmentLine } from "../../src/core/control.ts";
import type { Body } from "../../src/core/entry.ts";
import { Problem } from "../../src/core/problem.ts";
import { computeMs } from "../../src/core/unit.ts";
import { CARD, History, NOW } from "./history.ts";

const USAGE: AdjustedUsage = {
  billable: true,
  charged: computeMs(10_000_000n),
  namespace_id: "7",
  project_id: "50",
  usage_month: "2026-11-01",
};

const LINE: AdjustmentLine = {
  amount: "-4.000000",
  entry: "5",
  namespace_id: "7",
  project_id: "50",
  reverses: "",
  usage_month: "2026-11-01",
};

/** As LINE, on an entry before. */
const STANDS: StandingLine = {
  amount: -4_000_000n,
  credit_run: "",
  entry: "5",
  namespace_id: "7",
  project_id: "50",
  reversed: false,
  usage_month: "2026-11-01",
};

function adjustment(
  lines: Partial<AdjustmentLine>[],
  more: Partial<Body<"adjustment">> = {},
): Body<"adjustment"> {
  return {
    ...{ approval: "", billing_month: "2026-11-01", by: "finance", credit_run: "" },
    ...{ first_line: "0", lines: lines.map((line) => ({ ...LINE, ...line })) },
    ...{ reason: "goodwill", salt: CARD.salt, ticket: "INC-1" },
    ...more,
  };
}

interface Known {
  usages?: Record<string, Partial<AdjustedUsage>>;
  lines?: Record<string, Partial<StandingLine>>;
  adjusted?: Record<string, bigint>;
  history?: History;
}

function standing({ usages = { 5: {} }, lines = {}, adjusted = {} }: Known): Standing {
  const filled = <T>(rows: Record<string, Partial<T>>, usual: T) =>
    new Map(Object.entries(rows).map(([key, row]) => [key, { ...usual, ...row }]));
  return {
    usages: filled(usages, USAGE),
    lines: filled(lines, STANDS),
    adjusted: new Map(Object.entries(adjusted)),
  };
}

/** The code of the refusal, with the members that it names; `""`: none. */
function answer(body: Body<"adjustment">, known: Known = {}): string {
  try {
    assertLines((known.history ?? new History()).prefix, body, NOW, standing(known));
    return "";
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const { members } = error.extension;
    return Array.isArray(members) ? `${error.code} ${members.join()}` : error.code;
  }
}

const lines = (...made: Partial<AdjustmentLine>[]) => adjustment(made);

test("a usage is adjusted within what was charged, over all entries and all lines of one", () => {
  expect(answer(lines({}))).toBe("");
  expect(answer(lines({ amount: "-10.000000" }))).toBe("");
  expect(answer(lines({ amount: "-10.000001" }))).toBe("exceeds-original");
  expect(answer(lines({ amount: "0.000001" }))).toBe("exceeds-original");
  expect(answer(lines({}), { adjusted: { 5: -6_000_000n } })).toBe("");
  expect(answer(lines({}), { adjusted: { 5: -6_000_001n } })).toBe("exceeds-original");
  expect(answer(lines({ amount: "6.000000" }), { adjusted: { 5: -6_000_000n } })).toBe("");
  expect(answer(lines({}, {}))).toBe("");
  expect(answer(lines({}, {}, {}))).toBe("exceeds-original");
});

test("only billable usage that stands is adjusted, under the names that it has", () => {
  expect(answer(lines({ entry: "6" }))).toBe("not-found");
  expect(answer(lines({}), { usages: { 5: { billable: false } } })).toBe("not-billable-usage");
  for (const other of [
    { namespace_id: "8" },
    { project_id: "51" },
    { project_id: "" },
    { usage_month: "2026-10-01" },
  ]) {
    const [member = ""] = Object.keys(other);
    const body = adjustment([other], { billing_month: other.usage_month ?? "2026-11-01" });
    expect(answer(body)).toBe(`invalid-request lines.0.${member}`);
  }
});

test("nothing is adjusted by nothing", () => {
  expect(answer(lines({ amount: "0.000000" }))).toBe("invalid-request lines.0.amount");
});

test("it is posted where usage of its month would be that came now", () => {
  const history = new History();
  const october = { usage_month: "2026-10-01", entry: "", project_id: "" };
  const posted = (billing_month: string) =>
    answer(adjustment([october], { billing_month }), { history });
  expect(posted("2026-10-01")).toBe("");
  expect(posted("2026-11-01")).toBe("months-in-order");
  const closing = history.close("2026-10-01");
  expect(posted("2026-10-01")).toBe("months-in-order");
  expect(posted("2026-11-01")).toBe("");
  history.withdraw(closing);
  expect(posted("2026-10-01")).toBe("");
});

test("of a month that has not begun nothing was used", () => {
  const december = { usage_month: "2026-12-01", entry: "" };
  const body = adjustment([december], { billing_month: "2026-12-01" });
  expect(answer(body)).toBe("not-billable-usage");
});

test("of a namespace that was charged, a project that was not is named", () => {
  const body = lines({ entry: "", project_id: "51" });
  const scopes = body.lines.flatMap(scopesOf);
  const charged = scopes.map((scope) => {
    const sums = { charged: scope.project_id === "" ? 10n ** 15n : 0n, adjusted: 0n };
    return [scopeName(scope), sums] as const;
  });
  const extension = { ...scopes[1], project_id: "51" };
  const refusal = expect.objectContaining({ code: "not-billable-usage", extension });
  expect(() => assertLeft(body, new Map(charged))).toThrow(refusal);
});

test("a line is taken back once, by no more than it was, and by what names the same", () => {
  const back = { amount: "4.000000", reverses: "9/0" };
  const known = { lines: { "9/0": {} }, adjusted: { 5: -4_000_000n } };
  expect(answer(lines(back), known)).toBe("");
  expect(answer(lines({ ...back, amount: "1.000000" }), known)).toBe("");
  expect(answer(lines({ ...back, amount: "4.000001" }), known)).toBe("exceeds-original");
  expect(answer(lines({ ...back, amount: "-1.000000" }), known)).toBe("exceeds-original");
  expect(answer(lines({ ...back, reverses: "9/1" }), known)).toBe("not-found");
  expect(answer(lines({ ...back, reverses: "09/0" }), known)).toBe("not-found");
  expect(answer(lines({ ...back, entry: "" }), known)).toBe("invalid-request lines.0.entry");
  const again = { ...known, lines: { "9/0": { reversed: true } } };
  expect(answer(lines(back), again)).toBe("already-reversed");
  const half = { ...back, amount: "1.000000" };
  expect(answer(lines(half, half), known)).toBe("already-reversed");
});

test("a line of a credit run is taken back by a credit run, and no other line is", () => {
  const back = { amount: "4.000000", reverses: "9/0" };
  const adjusted = { 5: -4_000_000n };
  const ofRun = { lines: { "9/0": { credit_run: "8" } }, adjusted };
  expect(answer(lines(back), ofRun)).toBe("part-of-credit-run");
  expect(answer(adjustment([back], { credit_run: "10" }), ofRun)).toBe("");
  const byHand = { lines: { "9/0": {} }, adjusted };
  expect(answer(adjustment([back], { credit_run: "10" }), byHand)).toBe("part-of-credit-run");
});

const amounts = fc.bigInt({ min: -12n, max: 12n }).filter((amount) => amount !== 0n);
const projects = fc.constantFrom("", "50", "51");

test("after any lines that are let in, what is left of no month and no project is below zero", () => {
  const drawn = fc.array(fc.tuple(amounts, projects), { minLength: 1, maxLength: 6 });
  const charged = fc.record({ 50: fc.bigInt(0n, 10n), 51: fc.bigInt(0n, 10n) });
  const whole = fc.bigInt(-5n, 0n);
  fc.assert(
    fc.property(drawn, charged, whole, (made, of, adjusted) => {
      const body = adjustment(
        made.map(([amount, project_id]) => ({
          amount: formatSignedComputeMs(amount),
          entry: "",
          project_id,
        })),
      );
      const figures = new Map<string, MonthFigures>([
        [name(""), { charged: of[50] + of[51], adjusted }],
        [name("50"), { charged: of[50], adjusted: 0n }],
        [name("51"), { charged: of[51], adjusted: 0n }],
      ]);
      const sum = (project: string) =>
        made.reduce((all, [amount, own]) => {
          return project === "" || own === project ? all + amount : all;
        }, 0n);
      const touched = new Set(["", ...made.map(([, project]) => project)]);
      const isLeft = [...touched].every((project) => {
        const { charged = 0n, adjusted = 0n } = figures.get(name(project)) ?? {};
        return charged > 0n && charged + adjusted + sum(project) >= 0n;
      });
      const check = () => assertLeft(body, figures);
      if (isLeft) expect(check).not.toThrow();
      else expect(check).toThrow(/^(exceeds-original|not-billable-usage)$/);
    }),
    { numRuns: 2_000 },
  );
});

function name(project_id: string): string {
  return scopeName({ namespace_id: "7", project_id, usage_month: "2026-11-01" });
}

test("a namespace's line is of its month, a project's of both", () => {
  expect(scopesOf({ ...LINE, project_id: "" }).map(scopeName)).toEqual([name("")]);
  expect(scopesOf(LINE).map(scopeName)).toEqual([name(""), name("50")]);
});
