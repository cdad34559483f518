/** The statement of a closed month: everything in it is said by entries, so that anybody who has them makes the same. */
import { formatSignedComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import type { EntryOf } from "../../core/entry.ts";
import { cardsIn } from "../../core/month/cards.ts";
import { formatParts, formatRoll, formatSums } from "../../core/month/lines.ts";
import type { Statement } from "../../core/month/statement.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Tracking } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { readCorrections } from "../../store/month-figures.ts";
import { decodedAs } from "../usage/show.ts";
import { missingIn } from "./conditions.ts";
import type { Counted } from "./count.ts";
import { readPinned } from "./pinned.ts";

type Closed = EntryOf<"month_closed">;

interface Stating {
  tx: Transaction;
  closed: Closed;
  counted: Counted;
}

/** A string: a precondition that the entries before the cut-off do not meet. */
export async function statementOf({ tx, closed, counted }: Stating): Promise<Statement | string> {
  const { body, log } = closed;
  const { month } = body;
  const index = BigInt(body.closing);
  const closeDelayDays = BigInt(body.close_delay_days);
  const pinned = await readPinned(tx, log, { index, closeDelayDays });
  const { before, closing, conditions, prefix } = pinned;
  const [missing] = missingIn(conditions);
  if (missing !== undefined) return missing;
  return {
    ...saidBy(closed),
    ...countedIn(counted),
    cards: cardsOf(prefix, month),
    closing: { approval: closing.body.approval, at: closing.at, index: String(index) },
    corrections: await corrections(tx, { log, month }, index),
    instance: { platform: prefix.log.platform, unique_id: prefix.log.unique_id },
    preconditions: conditions.map(({ code, evidence }) => ({ code, evidence })),
    range: { from: before === undefined ? "0" : String(before.index), to: String(index) },
    v: "1",
  };
}

/** What `month_closed` itself says. */
export function saidBy({ at, body, index, log }: Closed) {
  return {
    anchor: { by: body.anchored_by, kind: body.anchor },
    checkpoint: { root: body.root, size: body.size },
    close_delay_days: body.close_delay_days,
    closed: { at, index: String(index) },
    exports: body.exports,
    log,
    month: body.month,
    rollups_sha256: body.rollups_sha256,
    totals: body.totals,
  };
}

function countedIn({ accounts, allocations, packs, usage, late }: Counted) {
  return {
    accounts: linesOf(accounts),
    allocations: {
      ...linesOf(allocations),
      ...formatParts(allocations),
      packs: formatSignedComputeMs(allocations.packs),
    },
    late: late.map(({ usage_month, ...sums }) => ({ ...formatSums(sums), usage_month })),
    packs: { ...linesOf(packs), ...formatRoll(packs) },
    usage: usage.map(({ machine_type, tracking, ...sums }) => {
      return { ...formatSums(sums), machine_type, tracking };
    }),
  };
}

function linesOf({ lines, sha256 }: Counted["accounts"]) {
  return { lines: String(lines), sha256 };
}

function cardsOf(prefix: Prefix, month: string): Statement["cards"] {
  const all = Tracking.options.flatMap((tracking) => cardsIn(prefix.cards(tracking), month));
  return all.map(({ effective_from, index, source, tracking }) => {
    return { effective_from, index: String(index), source, tracking };
  });
}

/** By reason, in the order of their texts. */
async function corrections(
  tx: Transaction,
  of: { log: string; month: string },
  below: bigint,
): Promise<Statement["corrections"]> {
  const sums = new Map<string, { amount: bigint; lines: bigint }>();
  for (const { amount, bytes, lines } of await readCorrections(tx, of, below)) {
    const { reason } = decodedAs("adjustment", bytes).body;
    const known = sums.get(reason) ?? { amount: 0n, lines: 0n };
    sums.set(reason, {
      amount: known.amount + parseSignedComputeMs(amount),
      lines: known.lines + lines,
    });
  }
  return Array.from(sums)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([reason, { amount, lines }]) => {
      return { amount: formatSignedComputeMs(amount), lines: String(lines), reason };
    });
}
