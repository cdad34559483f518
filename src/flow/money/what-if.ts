/**
 * A proposed card over months that are past, closed ones too: what it would have charged, beside what was
 * charged. Nothing is written. A long log is asked part by part, and whoever asks adds the parts up.
 */
import { z } from "zod";
import { assertFactors } from "../../core/admit.ts";
import { formatSignedComputeMs, parseComputeMs } from "../../core/charge.ts";
import { BODY, type Entry } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { misshapen, Problem } from "../../core/problem.ts";
import { IntegerText, MonthText, milliseconds } from "../../core/unit.ts";
import { chargeUnder, Differences, type Rated, ratesUnder } from "../../core/what-if.ts";
import type { Sql } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import { type RatedRow, readControlBefore, readRated } from "../../store/rated-usages.ts";
import type { Clock } from "../clock.ts";
import { catchUp, recall } from "../log/recall.ts";
import { decodedAs, reportOf } from "../usage/show.ts";

const { not_billable, project_factors, runner_factors, tracking } = BODY.rate_card.shape;

export const ProposedCard = z.strictObject({
  not_billable,
  project_factors,
  runner_factors,
  tracking,
});

/** Usage months [from, to). `after`: the `next` of the part before, together with its `as_of`. */
export const WhatIf = z
  .strictObject({
    card: ProposedCard,
    from: MonthText,
    to: MonthText,
    as_of: IntegerText.exactOptional(),
    after: IntegerText.exactOptional(),
  })
  .refine(({ from, to }) => from < to, { path: ["to"] });
export type WhatIf = z.infer<typeof WhatIf>;

/** Compute-milliseconds with six decimals; `difference` is `would` less `stands`. */
export interface ShownDifference {
  namespace_id: string;
  usage_month: string;
  /** Where an adjustment of that month would be posted now. */
  billing_month: string;
  machine_type: string;
  jobs: string;
  /** Of those, the ones that the card has no rate for; they are in no sum. */
  unrated: string;
  stands: string;
  would: string;
  difference: string;
}

export interface WhatIfPart {
  log: string;
  as_of: string;
  /** Of entries up to `next`, or all of them. */
  rows: ShownDifference[];
  next?: string;
}

/** A part takes so long, and no part is empty for it. */
const PART_MS = 2_000;
const PAGE = 1_000;

/** @throws Problem `not-found`, `invalid-request`, `invalid-factor`, `project-factors-not-applicable` */
export async function whatIf(
  { sql, clock }: { sql: Sql; clock: Clock },
  log: string,
  { after = "0", as_of, card, from, to }: WhatIf,
): Promise<WhatIfPart> {
  const head = await readHead(sql, log);
  if (head === undefined) throw new Problem("not-found");
  const size = as_of === undefined ? head.size : BigInt(as_of);
  if (size > head.size) misshapen("what_if", "as_of");
  const prefix = await recall(sql, log);
  assertFactors(prefix, card);
  const start = BigInt(after);
  await catchUp(sql, prefix, await readControlBefore(sql, log, start));
  const part = { tracking: card.tracking, months: { from, to }, to: size, limit: PAGE };
  const rates = ratesUnder(prefix, card);
  const sums = new Differences();
  const until = clock.now() + PART_MS;
  let at = start;
  let full = true;
  while (full && (at === start || clock.now() < until)) {
    const page = await readRated(sql, log, { ...part, from: at });
    for (const row of page) {
      if (row.kind !== "usage") decide(prefix, row);
      else add(sums, rates, row, card.tracking);
    }
    full = page.length === PAGE;
    at = (page.at(-1)?.index ?? size - 1n) + 1n;
  }
  const posting = await postingMonths(sql, log, head.controlIndex);
  const rows = sums.rows().map((row) => ({
    namespace_id: row.namespace_id,
    usage_month: row.usage_month,
    billing_month: posting(row.usage_month),
    machine_type: row.machine_type,
    jobs: String(row.jobs),
    unrated: String(row.unrated),
    stands: formatSignedComputeMs(row.stands),
    would: formatSignedComputeMs(row.would),
    difference: formatSignedComputeMs(row.would - row.stands),
  }));
  return { log, as_of: String(size), rows, ...(full && { next: String(at) }) };
}

/** What was in force was as of the entry that was rated: classes and limits are taken in as they come. */
function decide(prefix: Prefix, { bytes, index, kind }: RatedRow): void {
  if (index > prefix.controlIndex) prefix.apply(decodedAs(kind as Entry["kind"], bytes) as Entry);
}

function add(
  sums: Differences,
  rates: ReturnType<typeof ratesUnder>,
  row: RatedRow,
  tracking: Rated["machine"]["tracking"],
): void {
  const { bytes, compute_ms, duration_ms, machine_type, not_billable: reason, usage_month } = row;
  const { report } = reportOf(decodedAs("usage", bytes).body.jws);
  const isCharged = tracking === "self_managed" || reason === "";
  const rated: Rated = {
    build: report,
    machine: { machine_type: machine_type ?? "", tracking },
    duration: milliseconds(duration_ms ?? 0n),
    usage_month: usage_month ?? "",
    charged: isCharged ? parseComputeMs(compute_ms ?? "0") : 0n,
  };
  sums.add(rated, chargeUnder(rates, rated));
}

async function postingMonths(
  sql: Sql,
  log: string,
  controlIndex: bigint,
): Promise<(usageMonth: string) => string> {
  const prefix = await recall(sql, log);
  await catchUp(sql, prefix, controlIndex);
  return (month) => prefix.postingMonth(month);
}
