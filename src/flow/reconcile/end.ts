/** How a break ends: once, by what stands on the log, and without a person only where that is about the same. */
import { gapOf } from "../../core/anomaly.ts";
import { fingerprint } from "../../core/break.ts";
import type { Body, Entry, EntryOf } from "../../core/entry.ts";
import { heals } from "../../core/healing.ts";
import { misshapen, Problem } from "../../core/problem.ts";
import { readBreakState, readOpened } from "../../store/breaks.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readCome } from "../../store/counters.ts";
import { readEntries } from "../../store/entries.ts";
import { entryAt, standing } from "../control/standing.ts";

/** @throws Problem `not-found` for no break, and for evidence that does not stand; `already-decided` */
export async function assertBreakEnd(
  tx: Transaction,
  log: string,
  { break: index, evidence }: Pick<Body<"break_resolved">, "break" | "evidence">,
): Promise<void> {
  const state = await readBreakState(tx, log, BigInt(index));
  if (state === undefined) throw new Problem("not-found");
  if (state === "ended") throw new Problem("already-decided");
  if (evidence === "") return;
  const shown = BigInt(evidence);
  const [entry] = await readEntries(tx, log, shown, shown + 1n);
  if (entry === undefined) throw new Problem("not-found");
}

/**
 * That what is said to have healed is shown to be over. Asked under the head's lock, and again of entries that stand.
 *
 * @throws Problem `not-found` for no break, `invalid-request` for evidence of something else
 */
export async function assertHealed(
  tx: Sql | Transaction,
  { body, index, kind, log }: Entry,
): Promise<void> {
  if (kind !== "break_resolved" || body.outcome !== "healed") return;
  const broken = await standing(tx, log, "break", BigInt(body.break));
  if (broken === undefined) throw new Problem("not-found");
  const shown = BigInt(body.evidence) < index && (await entryAt(tx, log, BigInt(body.evidence)));
  const isShown = shown && heals(broken.body, shown);
  if (!isShown || !(await isOver(tx, broken, shown, index))) misshapen(kind, "evidence");
}

/** Of what one entry alone does not show, by those before `below`. */
async function isOver(
  tx: Sql | Transaction,
  { body: broken, log }: EntryOf<"break">,
  shown: Entry,
  below: bigint,
): Promise<boolean> {
  if (shown.kind === "source_count") return await isOfSource(tx, log, broken, shown.body);
  return broken.code !== "counter-gap" || (await filledBy(tx, log, broken, below)) !== undefined;
}

/** By which of entries 0 … below−1 the last counter came that a `counter-gap` names; undefined: not all have. */
export async function filledBy(
  tx: Sql | Transaction,
  log: string,
  broken: Body<"break">,
  below?: bigint,
): Promise<bigint | undefined> {
  const gap = gapOf(broken);
  if (gap === undefined) return undefined;
  const { come, last } = await readCome(tx, log, { kid: broken.kid, ...gap }, below);
  return come === gap.last - gap.first + 1n ? (last ?? undefined) : undefined;
}

/** Among the breaks about one source's events of one day, of which each is told from the first by the end before. */
async function isOfSource(
  tx: Sql | Transaction,
  log: string,
  broken: Body<"break">,
  { day, kind, source }: Body<"source_count">,
): Promise<boolean> {
  const about = { day, kind, source };
  const identity = { about, code: "source-count", tracking: "hosted" } as const;
  let print = fingerprint(identity);
  while (print !== broken.fingerprint) {
    const after = (await readOpened(tx, log, [print])).get(print)?.end ?? undefined;
    if (after === undefined) return false;
    print = fingerprint({ ...identity, after });
  }
  return true;
}
