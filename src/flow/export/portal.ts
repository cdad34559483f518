/** What each account pays for: a month's usage by project, machine type and day, with its part of the allocation. */
import { formatSignedComputeMs } from "../../core/charge.ts";
import { type Row, TABLES } from "../../core/export/tables.ts";
import { parseFactor } from "../../core/factor.ts";
import { creditsOf } from "../../core/feed/quantity.ts";
import { Waterfall } from "../../core/month/waterfall.ts";
import type { Transaction } from "../../store/connect.ts";
import { type MachineRate, type PortalLine, readPortalLines } from "../../store/portal-lines.ts";
import { readCards } from "../../store/registers.ts";
import { endOf } from "../month/conditions.ts";
import type { CutOff } from "../month/cut-off.ts";
import { type Posting, split } from "../month/split.ts";
import { decodedAs } from "../usage/show.ts";
import { cutOffOf } from "./cut-off.ts";
import type { Origin, Sheet } from "./source.ts";

/** With `credits`, where a number of compute minutes is said to be one. */
export function portal(origin: Origin): Sheet {
  const minutes = origin.parameters.credit_minutes;
  const credits = { name: "credits", type: "decimal", places: 10 } as const;
  return {
    columns: [...TABLES.portal, ...(minutes === undefined ? [] : [credits])],
    pages: pages(origin, (line, waterfall) => [
      rowOf(line, waterfall, minutes === undefined ? undefined : BigInt(minutes)),
    ]),
  };
}

/**
 * The same with two rows for a line of an earlier month that has both: what came late, and behind it what
 * corrects what was said before. Each is dealt its part of the allocation in that order; together they are the line's.
 */
export function portalApart(origin: Origin): AsyncGenerator<Row[]> {
  return pages(origin, (line, waterfall, month) => {
    const isBoth = line.jobs > 0n && line.adjustment !== 0n;
    const parts = isBoth && line.usage_month < month ? apart(line) : [line];
    return parts.map((part) => rowOf(part, waterfall));
  });
}

function apart(line: PortalLine): PortalLine[] {
  const nothing = { jobs: 0n, duration_ms: 0n, gross: 0n, charged: 0n, billable: 0n };
  return [
    { ...line, adjustment: 0n },
    { ...line, ...nothing },
  ];
}

async function* pages(
  origin: Origin,
  rowsOf: (line: PortalLine, waterfall: Waterfall, month: string) => Row[],
): AsyncGenerator<Row[]> {
  const { tx, log } = origin;
  const cutOff = await cutOffOf(origin);
  const { index: below, month } = cutOff;
  const rates = await ratesBelow(tx, log, below);
  // Of the namespace and usage month that the page before ended in.
  let open: { name: string; waterfall: Waterfall } | undefined;
  for await (const lines of readPortalLines(tx, {
    log,
    month,
    below,
    until: endOf(month),
    rates,
    pageRows: origin.pageRows,
  })) {
    // Of a namespace that goes on nothing is asked again: what is not folded yet would be read for each page of it.
    const begun = lines.filter((line) => wholeName(line) !== open?.name);
    const waterfalls = await waterfallsOf(tx, log, cutOff, begun);
    if (open !== undefined) waterfalls.set(open.name, open.waterfall);
    yield lines.flatMap((line) => {
      const name = wholeName(line);
      const waterfall = waterfalls.get(name);
      if (waterfall === undefined) throw new Error("portal: a line of no allocation");
      open = { name, waterfall };
      return rowsOf(line, waterfall, month);
    });
  }
}

/** Of all cards below an index. */
async function ratesBelow(tx: Transaction, log: string, below: bigint): Promise<MachineRate[]> {
  const cards = await readCards(tx, log, below);
  return cards.flatMap(({ index: card, bytes }) => {
    const texts = Object.entries(decodedAs("rate_card", bytes).body.runner_factors);
    return texts.flatMap(([machine_type, text]) => {
      const factor = parseFactor(text);
      return factor === undefined ? [] : [{ card, machine_type, ...factor }];
    });
  });
}

/** By name of the whole: one for each namespace and usage month that lines are of. */
async function waterfallsOf(
  tx: Transaction,
  log: string,
  cutOff: CutOff,
  lines: readonly PortalLine[],
): Promise<Map<string, Waterfall>> {
  const wholes = new Map(lines.map((line) => [wholeName(line), line]));
  const postings = new Map<string, Posting & { posted: Posting["posted"][number][] }>();
  for (const { namespace_id: namespace, usage_month, whole } of wholes.values()) {
    const posting = postings.get(namespace) ?? { namespace, posted: [] };
    posting.posted.push({ usage_month, ...whole });
    postings.set(namespace, posting);
  }
  const parts = await split(tx, log, cutOff, [...postings.values()]);
  return new Map(
    Array.from(parts).flatMap(([namespace_id, { shares }]) => {
      return shares.map((share) => {
        const name = wholeName({ namespace_id, usage_month: share.usage_month });
        return [name, new Waterfall(share)] as const;
      });
    }),
  );
}

function wholeName({
  namespace_id,
  usage_month,
}: Pick<PortalLine, "namespace_id" | "usage_month">): string {
  return `${namespace_id}/${usage_month}`;
}

function rowOf(line: PortalLine, waterfall: Waterfall, creditMinutes?: bigint): Row {
  const { adjustment, charged, gross } = line;
  const net = charged + adjustment;
  const billable = line.billable + adjustment;
  const { included, pack, overage, absorbed } = waterfall.deal(billable);
  const amounts = [
    ...[gross, gross - charged, adjustment, net, billable, net - billable],
    ...[included, pack, overage, absorbed],
  ];
  return [
    ...[line.account_id || null, line.subscription_id || null, line.namespace_id],
    ...[line.project_id, line.machine_type || null, line.tracking, line.usage_month, line.day],
    ...[String(line.jobs), String(line.duration_ms)],
    ...amounts.map(formatSignedComputeMs),
    ...(creditMinutes === undefined ? [] : [creditsOf(billable, creditMinutes)]),
  ];
}
