/** Who speaks: a system by its own events, or a person in a system's name. */
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";

/** Under dual control a person's word takes a proposal, whatever source it names. @throws Problem `approval-required` */
export function assertOwnWord({ control }: Prefix, isPerson: boolean): void {
  if (isPerson && control === "dual") throw new Problem("approval-required");
}
