/** What persons decide about a break: each ends once, by what stands on the log. */
import type { Body } from "../../core/entry.ts";
import { Problem } from "../../core/problem.ts";
import { readBreakState } from "../../store/breaks.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntries } from "../../store/entries.ts";

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
