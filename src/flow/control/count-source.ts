/**
 * What changes without a person carries its source's event: the source says how many events of a day it
 * sent, and beside it stands how many are on the log. A difference is for somebody to explain.
 */
import type { z } from "zod";
import { BODY } from "../../core/entry.ts";
import { Problem } from "../../core/problem.ts";
import { epochMs, instantText, monthOf } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { indexAt, readOfKind } from "../../store/source-events.ts";
import { salt } from "../log/chain.ts";
import type { Put, Receipt } from "../log/commit-entry.ts";
import { healedBy, type Opening, openAtHead, readOpen } from "../reconcile/open.ts";
import { decodedAs } from "../usage/show.ts";
import { assertOwnWord } from "./own-word.ts";

export const SourceCount = BODY.source_count.pick({
  day: true,
  kind: true,
  source: true,
  stated: true,
});
export type SourceCount = z.infer<typeof SourceCount>;

const DAY_MS = 86_400_000;

export interface Counted extends Receipt {
  stated: string;
  counted: string;
}

/**
 * Answered by the entry that stands if the same was stated of the day before.
 *
 * @param asker.by opaque id of the principal who asks
 * @param asker.isPerson who asks is no system: under dual control nobody ends a difference alone
 * @throws Problem `not-found`, `approval-required`, `invalid-request` for a day that is not over
 */
export async function countSource(
  opening: Opening,
  { log, by, isPerson = false }: { log: string; by: string; isPerson?: boolean },
  input: SourceCount,
): Promise<Counted> {
  const { appender, random } = opening;
  const from = `${input.day}T00:00:00.000Z`;
  const to = instantText(epochMs(from) + DAY_MS);
  let counted = "0";
  const receipt = await appender.together(log, async (put, { tx, prefix, at, size }) => {
    assertOwnWord(prefix, isPerson);
    if (at < to) throw new Problem("invalid-request", { members: ["day"] });
    const day = { from: await indexAt(tx, log, size, from), to: await indexAt(tx, log, size, to) };
    counted = String(await eventsOf(tx, log, input, day));
    // Said after the day was over, so that all that was said of it stands behind it.
    const stands = await statedBefore(tx, log, input, { from: day.to, to: size });
    const said =
      stands ?? (await put("source_count", { ...input, by, counted, salt: salt(random) }));
    await compare(opening, log, input, { counted, put, said: said.index, tx });
    return said;
  });
  return { ...receipt, stated: input.stated, counted };
}

async function eventsOf(
  tx: Transaction,
  log: string,
  { kind, source }: SourceCount,
  range: { from: bigint; to: bigint },
): Promise<bigint> {
  let count = 0n;
  for await (const { bytes } of readOfKind(tx, log, kind, range)) {
    if (decodedAs(kind, bytes).body.source === source) count += 1n;
  }
  return count;
}

/** The newest statement of this day, if it is the same. */
async function statedBefore(
  tx: Transaction,
  log: string,
  { day, kind, source, stated }: SourceCount,
  range: { from: bigint; to: bigint },
): Promise<Receipt | undefined> {
  let newest: { index: bigint; stated: string } | undefined;
  for await (const { index, bytes } of readOfKind(tx, log, "source_count", range)) {
    const { body } = decodedAs("source_count", bytes);
    const same = body.day === day && body.kind === kind && body.source === source;
    if (same) newest = { index, stated: body.stated };
  }
  if (newest?.stated !== stated) return undefined;
  const { index, leaf, at } = await readEntry(tx, log, newest.index);
  return { index, leaf, at, written: false };
}

/** A difference is a break of the month of its day; the next statement, of whatever, ends it. */
async function compare(
  opening: Opening,
  log: string,
  { day, kind, source, stated }: SourceCount,
  { counted, put, said, tx }: { counted: string; put: Put; said: bigint; tx: Transaction },
): Promise<void> {
  const about = { day, kind, source };
  const finding = { code: "source-count", tracking: "hosted", about, since: said } as const;
  const agrees = stated === counted;
  const { hash, random } = opening;
  for (const { index } of await readOpen(tx, log, [finding], hash)) {
    if (agrees || index < said) await put("break_resolved", healedBy(index, said, salt(random)));
  }
  if (agrees) return;
  const detail = `${kind} of ${day}: ${stated} sent, ${counted} here`;
  const found = { ...finding, month: monthOf(day), detail };
  await openAtHead({ ...opening, put, tx }, log, [found]);
}
