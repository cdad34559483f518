/** Right behind the entry that lets a held report in stands its usage. */
import type { Body } from "../../core/entry.ts";
import type { Deciding } from "../control/rules.ts";
import { standing } from "../control/standing.ts";
import type { Put } from "../log/commit-entry.ts";
import { letIn } from "./open.ts";

/** Of a `hold_resolved` that was just put. @throws Problem as `letIn` does */
export async function putReleased(
  put: Put,
  deciding: Deciding,
  { hold, outcome }: Body<"hold_resolved">,
): Promise<void> {
  if (outcome !== "released") return;
  const held = await standing(deciding.tx, deciding.prefix.id, "hold", BigInt(hold));
  if (held === undefined) throw new Error("release: of no hold");
  await put("usage", await letIn(deciding, held));
}
