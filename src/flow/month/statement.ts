/** The statement of a closed month: everything in it is said by entries, so that anybody who has them makes the same. */
import { formatSignedComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import type { Body } from "../../core/entry.ts";
import { sha256 } from "../../core/hash.ts";
import { cardsIn } from "../../core/month/cards.ts";
import { formatParts, formatRoll, formatSums } from "../../core/month/lines.ts";
import { encodeStatement, type Statement } from "../../core/month/statement.ts";
import type { Prefix } from "../../core/prefix.ts";
import { encodeBase64, encodeUtf8 } from "../../core/text.ts";
import { Tracking } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { readCorrections } from "../../store/month-figures.ts";
import { decodedAs } from "../usage/show.ts";
import { missingIn } from "./conditions.ts";
import type { Counted } from "./count.ts";
import { readPinned } from "./pinned.ts";

/** What `month_closed` says of the month, before there is one. */
export type Closing = Omit<Body<"month_closed">, "by" | "salt" | "statement_sha256">;

interface Stating {
  tx: Transaction;
  log: string;
  body: Closing;
  counted: Counted;
}

/** All of it but the place of `month_closed`: that entry has its hash. */
export type Draft = Omit<Statement, "closed">;

/** A string: a precondition that the entries before the cut-off do not meet. */
export async function draftOf({ tx, log, body, counted }: Stating): Promise<Draft | string> {
  const { month } = body;
  const index = BigInt(body.closing);
  const closeDelayDays = BigInt(body.close_delay_days);
  const pinned = await readPinned(tx, log, { index, closeDelayDays });
  const { before, closing, conditions, prefix } = pinned;
  const [missing] = missingIn(conditions);
  if (missing !== undefined) return missing;
  return {
    ...saidIn(body),
    ...countedIn(counted),
    cards: cardsOf(prefix, month),
    closing: { approval: closing.body.approval, at: closing.at, index: String(index) },
    corrections: await corrections(tx, { log, month }, index),
    instance: { platform: prefix.log.platform, unique_id: prefix.log.unique_id },
    log,
    preconditions: conditions.map(({ code, evidence }) => ({ code, evidence })),
    range: { from: before === undefined ? "0" : String(before.index), to: String(index) },
    v: "1",
  };
}

/** Its text, and the base64 SHA-256 of that. */
export interface Stated {
  text: string;
  sha256: string;
}

/** @param closed where `month_closed` stands */
export function stateAt(draft: Draft, closed: { at: string; index: bigint }): Stated {
  const { at, index } = closed;
  const text = encodeStatement({ ...draft, closed: { at, index: String(index) } });
  return { text, sha256: hashOf(text) };
}

export function hashOf(text: string): string {
  return encodeBase64(sha256(encodeUtf8(text)));
}

function saidIn(body: Closing) {
  return {
    anchor: { by: body.anchored_by, kind: body.anchor },
    checkpoint: { root: body.root, size: body.size },
    close_delay_days: body.close_delay_days,
    exports: body.exports,
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
