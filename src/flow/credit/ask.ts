/** A run is asked for by its preview: proposed to a second person, or written where one decides. */
import type { z } from "zod";
import { canonical } from "../../core/json.ts";
import { Problem } from "../../core/problem.ts";
import { LogId } from "../../core/unit.ts";
import { type CreditPreview, readCreditPreview } from "../../store/credit-previews.ts";
import { readHead } from "../../store/heads.ts";
import {
  type Asker,
  type Controlling,
  NewProposal,
  type Proposed,
  propose,
} from "../control/propose.ts";
import { keep, type Previewing } from "./preview.ts";
import { reversalLines } from "./reversal.ts";
import { assertOriginal } from "./rule.ts";
import { linesWritten, runAt } from "./written.ts";

/** Of a proposal: what it asks for is known. */
export const NewReversal = NewProposal.omit({ action: true, content: true });
export type NewReversal = z.infer<typeof NewReversal>;

/** `preview`: the id of one. */
export const NewCreditRun = NewReversal.extend({ preview: LogId });
export type NewCreditRun = z.infer<typeof NewCreditRun>;

export type Crediting = Controlling & Previewing;
type Place = Asker & { log: string };

/** @throws Problem `not-found` for no such preview, as `propose` and `assertRun` do */
export async function askRun(
  crediting: Crediting,
  place: Place,
  { preview: id, ...cause }: NewCreditRun,
): Promise<Proposed> {
  const preview = await readCreditPreview(crediting.sql, place.log, id);
  if (preview === undefined) throw new Problem("not-found");
  return await proposed(crediting, place, preview, cause);
}

/**
 * @throws Problem `not-found` for no such run, `cannot-be-reversed`, `already-reversed`, `exceeds-original`, as
 *   `propose` and `assertRun` do
 */
export async function askReversal(
  crediting: Crediting,
  place: Place,
  index: bigint,
  cause: NewReversal,
): Promise<Proposed> {
  const { log } = place;
  const run = await runAt(crediting.sql, log, index);
  // Asked under the head's lock again: here it saves looking for lines.
  assertOriginal(run);
  if ((await linesWritten(crediting.sql, log, run)) < run.lines) {
    throw new Problem("credit-run-under-way", { run: String(index) });
  }
  const head = await readHead(crediting.sql, log);
  if (head === undefined) throw new Problem("not-found");
  const selection = canonical({ as_of: String(head.size) });
  const named = { log, form: run.form, selection, reverses: index };
  const preview = await keep(crediting, named, (tx) => reversalLines(tx, log, run, head.size));
  return await proposed(crediting, place, preview, cause);
}

async function proposed(
  crediting: Crediting,
  place: Place,
  preview: CreditPreview,
  cause: NewReversal,
): Promise<Proposed> {
  const { form, lines, lines_sha256, reverses, selection, total } = preview;
  const { reason, ticket } = cause;
  const content = {
    ...{ form, lines_sha256, reason, selection, ticket, total },
    lines: String(lines),
    reverses: String(reverses ?? ""),
  };
  return await propose(crediting, place, { ...cause, action: "credit_run", content });
}
