/**
 * A limit or a pack that was just written is brought to live usage before its writer is answered: whoever
 * asks next, of whichever process, is answered by it, and not by what that process knew before.
 */
import { Problem } from "../../core/problem.ts";
import type { NamespaceKey } from "../../core/quota/live.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { type Asking, askNamespace } from "./ask.ts";

/** Any figures that hold the entry will do. */
const ANY_AGE = { maxAgeMs: Number.MAX_SAFE_INTEGER };

/** Where too little can be reached it is left: what was written stands, and figures come to hold it. */
export async function bringInForce(
  asking: Asking,
  key: NamespaceKey,
  { index }: Pick<Receipt, "index">,
): Promise<void> {
  try {
    await asking.ledger.hold(key, { asOf: index + 1n });
    await askNamespace(asking, key, [], ANY_AGE);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
}
