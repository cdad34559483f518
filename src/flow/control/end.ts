/** A proposal ends without an approval: refused by an approver, or taken back by who made it. */
import { z } from "zod";
import { BODY } from "../../core/entry.ts";
import { Problem } from "../../core/problem.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { openProposal } from "./open-proposal.ts";
import type { Controlling } from "./propose.ts";

export const Ending = z.strictObject({ reason: BODY.proposal_ended.shape.reason });
export type Ending = z.infer<typeof Ending>;

interface Place {
  log: string;
  index: bigint;
  /** Opaque id of the principal who asks. */
  by: string;
}

/** @throws Problem `not-found`, `proposal-ended`, `proposal-expired`, `same-person` */
export async function refuse(
  controlling: Pick<Controlling, "appender" | "random">,
  place: Place,
  ending: Ending,
): Promise<Receipt> {
  return await end(controlling, place, "refused", ending);
}

/** @throws Problem as `refuse` does; but `not-found` for a proposal of somebody else */
export async function withdraw(
  controlling: Pick<Controlling, "appender" | "random">,
  place: Place,
  ending: Ending,
): Promise<Receipt> {
  return await end(controlling, place, "withdrawn", ending);
}

async function end(
  { appender, random }: Pick<Controlling, "appender" | "random">,
  { log, index, by }: Place,
  outcome: "refused" | "withdrawn",
  { reason }: Ending,
): Promise<Receipt> {
  return await appender.together(log, async (put, held) => {
    const proposal = await openProposal(held, index);
    const own = proposal.body.by === by;
    if (outcome === "withdrawn" && !own) throw new Problem("not-found");
    // A refusal says that a second person has looked.
    if (outcome === "refused" && own) throw new Problem("same-person");
    const body = { by, outcome, proposal: String(index), reason, salt: salt(random) };
    return await put("proposal_ended", body);
  });
}
