/** Accounts, adjustments, credit runs (DESIGN §7). */
import type { AdjustmentLine } from "../../src/core/control.ts";
import type { Body } from "../../src/core/entry.ts";
import { type Rules, starts, type Turn } from "../prefix/rule.ts";
import { append, type State } from "../prefix/state.ts";
import { postingMonth } from "../rating.ts";
import { micro } from "../tally/record.ts";
import { creditLines, startRun } from "./credit-run.ts";

export const MONEY_RULES = {
  account,
  adjustment,
  credit_run: startRun,
} satisfies Rules;

function account({ money }: State, body: Body<"account">, turn: Turn): void {
  const { effective_from, namespace_id, source, source_version } = body;
  const earlier = money.accounts.get(namespace_id) ?? [];
  const newest = earlier.findLast((other) => other.source === source);
  const newer = BigInt(source_version) > BigInt(newest?.source_version ?? -1);
  turn.expect(newer, "stale-source-version", `${source} ${source_version}`);
  starts(turn, effective_from, earlier);
  append(money.accounts, namespace_id, { ...body, index: turn.index });
}

function adjustment(state: State, body: Body<"adjustment">, turn: Turn): void {
  creditLines(state, body, turn);
  const alone = body.credit_run !== "" || body.first_line === "0";
  turn.expect(alone, "credit-run-line", `first line ${body.first_line} of no run`);
  body.lines.forEach((said, line) => {
    judgeLine(state, body, { said, line }, turn);
    noteLine(state, body, { said, line }, turn);
  });
}

interface Line {
  said: AdjustmentLine;
  line: number;
}

function judgeLine(
  state: State,
  { billing_month }: Body<"adjustment">,
  { line, said }: Line,
  turn: Turn,
): void {
  const { usage_month } = said;
  turn.expect(micro(said.amount) !== 0n, "adjustment-amount", `line ${line} is of nothing`);
  const due = usage_month <= turn.at && billing_month === postingMonth(state, usage_month);
  turn.expect(due, "adjustment-month", `line ${line}: ${usage_month} posted to ${billing_month}`);
  for (const conflict of state.evidence.conflicts.values()) {
    if (said.entry === String(conflict.stands)) conflict.corrected = true;
  }
}

/** What stands of it, and what it takes back, only all entries together can say. */
function noteLine(
  { money }: State,
  { billing_month, credit_run }: Body<"adjustment">,
  { line, said }: Line,
  { index }: Turn,
): void {
  const { entry, namespace_id: namespace, project_id: project, reverses, usage_month } = said;
  const run = credit_run === "" ? undefined : BigInt(credit_run);
  const back = run === undefined ? undefined : money.runs.get(run)?.body.reverses;
  money.lines.note({ index, line, run }, said);
  if (reverses !== "") {
    const [entry = "", number = ""] = reverses.split("/");
    const place = { index: BigInt(entry), line: Number(number) };
    money.lines.reverse({ ...place, run: back ? BigInt(back) : run }, index, said);
  }
  const figure = { billing_month, usage_month, namespace, project, entry };
  money.figure({ ...figure, index, amount: micro(said.amount) }, line);
}
