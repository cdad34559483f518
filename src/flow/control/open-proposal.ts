/** A proposal that somebody may still decide about, under the head's lock. */
import { Problem } from "../../core/problem.ts";
import { readProposal } from "../../store/proposals.ts";
import type { Held } from "../log/commit-entry.ts";
import { type Standing, standing } from "./standing.ts";

/** @throws Problem `not-found`, `proposal-ended`, `proposal-expired` */
export async function openProposal(
  { tx, prefix, at }: Held,
  index: bigint,
): Promise<Standing<"proposal">> {
  const state = await readProposal(tx, prefix.id, index);
  const proposal = state && (await standing(tx, prefix.id, "proposal", index));
  if (state === undefined || proposal === undefined) throw new Problem("not-found");
  const { outcome } = state;
  if (outcome !== null && outcome !== "expired") throw new Problem("proposal-ended");
  if (outcome === "expired" || proposal.body.expires_at <= at) {
    throw new Problem("proposal-expired");
  }
  return proposal;
}
