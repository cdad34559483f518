/** Corrections: never more than was charged, each taken back once, runs as a whole, and in every figure. */
import { expect, test } from "vitest";
import type { Body } from "../../src/core/entry.ts";
import { sha256 } from "../../src/core/hash.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { account } from "./closing.ts";
import { card, line, pack, SALT, TestLog } from "./log.ts";

const MONTH = "2026-11-01";
const WHY = { approval: "", by: "finance", reason: "incident", salt: SALT, ticket: "CASE-1" };

type Line = Body<"adjustment">["lines"][number];

/** Two builds of a minute each, as entries 4 and 5, of two projects; entry 6 costs nothing. */
function start(): TestLog {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  log.submit(agent);
  log.submit(agent, { project: "20" });
  log.submit(agent, { reason: "runner_system_failure" });
  return log;
}

function credit(amount: string, said: Partial<Line> = {}): Line {
  const named = { namespace_id: "1", project_id: "10", usage_month: MONTH };
  return { amount, entry: "4", ...named, reverses: "", ...said };
}

function adjust(log: TestLog, lines: Line[], said: Partial<Body<"adjustment">> = {}): string {
  const place = { billing_month: MONTH, credit_run: "", first_line: "0" };
  return log.write("adjustment", { ...WHY, ...place, lines, ...said });
}

async function codes(log: TestLog): Promise<string[]> {
  const { findings, open } = await auditFiles(filesOf(log));
  return [...findings.byCode.keys(), ...open.byCode.keys()];
}

test("a charge may be taken back to its last digit, by whoever many lines, and given again", async () => {
  const log = start();
  const first = adjust(log, [credit("-59999.999999"), credit("-0.000001")]);
  adjust(log, [credit("59999.999999", { reverses: `${first}/0` })]);
  adjust(log, [credit("-59999.999999")]);
  expect(await codes(log)).toEqual([]);
});

const WHOLE: Partial<Line> = { entry: "", project_id: "" };
const PROJECT: Partial<Line> = { entry: "", project_id: "20" };

test("an amount beyond what one build comes to is a finding, and never another amount", async () => {
  const wrapped = "340282366920938463463374607431769.211456"; // 2^128 millionths
  for (const amount of [`-${wrapped}`, wrapped, `1${"0".repeat(21)}.000000`]) {
    for (const named of [{}, { entry: "", project_id: "" }]) {
      const log = start();
      adjust(log, [credit(amount, named)]);
      expect(await codes(log)).toContain("entry-malformed");
    }
  }
});

test("a namespace's month, or a project's in it, may be taken back as a whole", async () => {
  const log = start();
  adjust(log, [credit("-60000.000000", PROJECT)]);
  adjust(log, [credit("-60000.000000", WHOLE)]);
  expect(await codes(log)).toEqual([]);
});

/** What no honest service lets in; `first` is an adjustment of half a minute of entry 4. */
const FALSE: [string, string, (first: string) => Line[]][] = [
  ["exceeds-original", "more than was charged", () => [credit("-30000.000001")]],
  ["exceeds-original", "more than was taken", () => [credit("30000.000001")]],
  ["exceeds-original", "more than a month has", () => [credit("-90000.000001", WHOLE)]],
  ["exceeds-original", "more than a project's month has", () => [credit("-60000.000001", PROJECT)]],
  ["adjusted-usage", "what cost nothing", () => [credit("-1.000000", { entry: "6" })]],
  [
    "adjusted-usage",
    "another namespace's usage",
    () => [credit("-1.000000", { namespace_id: "2" })],
  ],
  ["adjusted-usage", "what is no usage", () => [credit("-1.000000", { entry: "1" })]],
  [
    "adjusted-usage",
    "a month in which nothing was used",
    () => [credit("-1.000000", { ...WHOLE, namespace_id: "9" })],
  ],
  ["adjustment-amount", "nothing", () => [credit("0.000000")]],
  [
    "reversal",
    "a line that is not there",
    (first) => [credit("1.000000", { reverses: `${first}/1` })],
  ],
  [
    "reversal",
    "a line of the same sign",
    (first) => [credit("-1.000000", { reverses: `${first}/0` })],
  ],
  [
    "reversal",
    "a line about something else",
    (first) => [credit("1.000000", { ...WHOLE, reverses: `${first}/0` })],
  ],
  [
    "reversal-twice",
    "a line that is taken back twice",
    (first) => [
      credit("1.000000", { reverses: `${first}/0` }),
      credit("1.000000", { reverses: `${first}/0` }),
    ],
  ],
];

test.each(FALSE)("%s: an adjustment of %s is found", async (code, _, lines) => {
  const log = start();
  const first = adjust(log, [credit("-30000.000000")]);
  const index = adjust(log, lines(first));
  const result = await auditFiles(filesOf(log));
  expect(result.findings.byCode.has(code as never)).toBe(true);
  expect(result.findings.first?.index).toBe(BigInt(index));
});

test("an adjustment is posted where usage of its month would be", async () => {
  const late = start();
  adjust(late, [credit("-1.000000")], { billing_month: "2026-12-01" });
  expect(await codes(late)).toEqual(["adjustment-month"]);
  const early = start();
  adjust(early, [credit("-1.000000", { ...WHOLE, usage_month: "2026-12-01" })]);
  expect(await codes(early)).toContain("adjustment-month");
});

function run(lines: readonly Json[], total: string, said: Partial<Body<"credit_run">> = {}) {
  const text = lines.map((one) => `${canonical(one)}\n`).join("");
  const lines_sha256 = encodeBase64(sha256(encodeUtf8(text)));
  const counted = { lines: String(lines.length), lines_sha256, total };
  return {
    ...WHY,
    form: "credit" as const,
    ...counted,
    reverses: "",
    selection: '{"as_of":"4"}',
    ...said,
  };
}

const LINES = [credit("-1.000000"), credit("-2.000000"), credit("-3.000000", WHOLE)];

/** A whole run in two entries: its index, and those of its adjustments. */
function wholeRun(log: TestLog): { index: string; lines: string[] } {
  const credit_run = log.write("credit_run", run(LINES, "-6.000000"));
  const first = adjust(log, LINES.slice(0, 2), { credit_run });
  const rest = adjust(log, LINES.slice(2), { credit_run, first_line: "2" });
  return { index: credit_run, lines: [`${first}/0`, `${first}/1`, `${rest}/0`] };
}

function backOf(lines: readonly string[]): Line[] {
  return LINES.map((one, i) => ({
    ...one,
    amount: one.amount.slice(1),
    reverses: lines[i] ?? "",
  }));
}

test("a credit run whose lines are those that were approved is proven, and so is its reversal", async () => {
  const log = start();
  const { index, lines } = wholeRun(log);
  const back = backOf(lines);
  const credit_run = log.write("credit_run", run(back, "6.000000", { reverses: index }));
  adjust(log, back, { credit_run });
  expect(await codes(log)).toEqual([]);
});

test("a run whose lines are not all there yet is never a pass", async () => {
  const log = start();
  const credit_run = log.write("credit_run", run(LINES, "-6.000000"));
  adjust(log, LINES.slice(0, 2), { credit_run });
  expect(await codes(log)).toEqual(["credit-run-unfinished"]);
});

test("a run is taken back once, as a whole, and its lines by nothing else", async () => {
  const twice = start();
  const first = wholeRun(twice);
  const back = backOf(first.lines);
  for (let i = 0; i < 2; i += 1) {
    twice.write("credit_run", run(back, "6.000000", { reverses: first.index }));
  }
  expect(await codes(twice)).toEqual(["reversal-twice", "credit-run-unfinished"]);

  const part = start();
  const second = wholeRun(part);
  const [one] = backOf(second.lines);
  part.write("credit_run", run([one ?? {}], "1.000000", { reverses: second.index }));
  expect(await codes(part)).toContain("reversal");

  const hand = start();
  const [line] = backOf(wholeRun(hand).lines);
  if (line !== undefined) adjust(hand, [line]);
  expect(await codes(hand)).toEqual(["reversal"]);
});

test.each<[string, (log: TestLog) => void]>([
  [
    "credit-run-line",
    (log) => {
      const credit_run = log.write("credit_run", run(LINES, "-6.000000"));
      adjust(log, LINES.slice(0, 2), { credit_run });
      adjust(log, LINES.slice(2), { credit_run, first_line: "1" });
    },
  ],
  [
    "credit-run-line",
    (log) => {
      const credit_run = log.write("credit_run", run(LINES, "-6.000000"));
      adjust(log, [...LINES, credit("-1.000000")], { credit_run });
    },
  ],
  [
    "credit-run-line",
    (log) => {
      const credit_run = log.write("credit_run", run(LINES, "-6.000000"));
      adjust(log, LINES, { credit_run, by: "somebody" });
    },
  ],
  ["credit-run-line", (log) => adjust(log, LINES, { first_line: "7" })],
  [
    "credit-run",
    (log) => {
      const credit_run = log.write("credit_run", run(LINES, "-7.000000"));
      adjust(log, LINES, { credit_run });
    },
  ],
  [
    "credit-run",
    (log) => {
      const credit_run = log.write("credit_run", run(LINES, "-6.000000"));
      adjust(log, [credit("-2.000000"), credit("-1.000000"), ...LINES.slice(2)], { credit_run });
    },
  ],
])("%s: lines other than those of their run are found (%#)", async (code, write) => {
  const log = start();
  write(log);
  expect(said(await auditFiles(filesOf(log))).codes).toEqual([code]);
});

test("packs of a goodwill run are its lines, and are taken back by a version of nothing", async () => {
  const log = start();
  const valid = { expires_in: "2027-10-01", purchased_in: MONTH };
  const given = ["1", "2"].map((namespace_id) => ({ ...valid, minutes: "10", namespace_id }));
  const taken = given.map((one) => ({ ...one, minutes: "0" }));
  const form = "goodwill_pack" as const;
  const index = log.write("credit_run", run(given, "1200000.000000", { form }));
  const put = (lines: typeof given, from: number): void => {
    lines.forEach((one, i) => {
      const named = { pack_id: `${index}/${one.namespace_id}`, source: "minutebook/credit_run" };
      log.write("pack", { ...pack(String(from + i)), ...one, ...named, by: "finance" });
    });
  };
  put(given, 1);
  log.write("credit_run", run(taken, "-1200000.000000", { form, reverses: index }));
  put(taken, 3);
  expect(await codes(log)).toEqual([]);
  put(taken, 5);
  expect(await codes(log)).toContain("credit-run-line");
});

test("a namespace that a run gave minutes is given none by a run of an older look", async () => {
  const line = { expires_in: "2027-10-01", minutes: "10", namespace_id: "1", purchased_in: MONTH };
  const log = start();
  const give = (selection: string): void => {
    const said = { form: "goodwill_pack", selection } as const;
    const index = log.write("credit_run", run([line], "600000.000000", said));
    const named = { pack_id: `${index}/1`, source: "minutebook/credit_run" };
    log.write("pack", { ...pack("1"), ...line, ...named, by: "finance" });
  };
  give('{"as_of":"4"}');
  give('{"as_of":"9"}');
  expect(await codes(log)).toEqual([]);
  give('{"as_of":"9"}');
  expect(await codes(log)).toEqual(["credit-run-line"]);
});

test("an account's versions only grow, and only the first of its key reaches back", async () => {
  const log = new TestLog();
  log.write("account", account());
  log.write("account", account({ namespace_id: "1" }));
  const later = { effective_from: "2026-11-20T12:00:00.001Z", source_version: "2" };
  log.write("account", account(later));
  expect(await codes(log)).toEqual([]);
  log.write("account", account({ ...later, effective_from: "2027-01-01T00:00:00.000Z" }));
  log.write("account", account({ source_version: "3" }));
  expect(await codes(log)).toEqual(["stale-source-version", "starts-in-the-past"]);
});
