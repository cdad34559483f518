/** The lines that take a run back: one for each of its own, in the same order. */
import { parseSignedComputeMs } from "../../core/charge.ts";
import { ofAdjustment, ofPack, reversalLine } from "../../core/credit-run.ts";
import { Problem } from "../../core/problem.ts";
import type { Transaction } from "../../store/connect.ts";
import { type CreditRunRow, readAppliedLines, readPacksOfRun } from "../../store/credit-runs.ts";
import { decodedAs } from "../usage/show.ts";
import type { FoundLine } from "./select.ts";

/**
 * @param run all of whose lines stand
 * @throws Problem `exceeds-original` where a usage was charged again meanwhile, so that more would come back
 *   than was taken
 */
export async function* reversalLines(
  tx: Transaction,
  log: string,
  run: Pick<CreditRunRow, "index" | "form" | "lines">,
  asOf: bigint,
): AsyncGenerator<FoundLine> {
  if (run.form === "goodwill_pack") {
    let left = run.lines;
    for await (const bytes of readPacksOfRun(tx, log, run.index)) {
      if (left === 0n) return;
      left -= 1n;
      const { expires_in, minutes, namespace_id, purchased_in } = decodedAs("pack", bytes).body;
      const line = { expires_in, minutes: "0", namespace_id, purchased_in };
      yield { line: ofPack(line, BigInt(minutes)) };
    }
    return;
  }
  for await (const { adjusted, name, ...line } of readAppliedLines(tx, log, run.index, asOf)) {
    const isOver = parseSignedComputeMs(adjusted) - parseSignedComputeMs(line.amount) > 0n;
    if (line.entry !== "" && isOver) throw new Problem("exceeds-original");
    yield { line: ofAdjustment(reversalLine({ ...line, reverses: "" }, name)) };
  }
}
