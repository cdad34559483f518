/** Whose word it is that somebody outside holds a closed month. */
import type { Findings, OpenCode } from "../finding.ts";
import type { ClosedMonth } from "../money/state.ts";

/**
 * `month_closed` says who holds its checkpoint, and anybody who writes the log can say so. Proven it is by the
 * witnesses that the auditor knows, once they hold a checkpoint of the tree that is at least as large.
 *
 * @param held size of the largest that they have cosigned; 0 where none was asked for
 */
export function missAnchors(
  closed: readonly ClosedMonth[],
  held: bigint,
  open: Findings<OpenCode>,
): void {
  for (const { body, index } of closed) {
    if (body.anchor === "none" || BigInt(body.size) <= held) continue;
    const names = body.anchored_by.map(({ name }) => name).join(", ");
    open.add("anchor-unproven", { index }, `${body.month} says ${body.anchor}, by ${names}`);
  }
}
