/** How held reports, conflicts and breaks ended: by what stood before, and with what stands right behind. */
import type { Entry, EntryOf } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Sql } from "../../store/connect.ts";
import { standing } from "../control/standing.ts";
import { assertConflictEnd, assertHoldEnd } from "../hold/open.ts";
import { assertHealed } from "../reconcile/end.ts";
import type { Misjudged } from "./event.ts";

/** The rows that are read here were compared with their entries already. */
export async function* resolutionRules(
  entry: Entry,
  prefix: Prefix,
  tx: Sql,
): AsyncGenerator<Misjudged> {
  const below = entry.index;
  try {
    if (entry.kind === "hold_resolved") await assertHoldEnd({ tx, prefix, below }, entry.body);
    if (entry.kind === "conflict_resolved") {
      await assertConflictEnd({ tx, prefix, below }, entry.body);
    }
    await assertHealed(tx, entry);
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    yield ["an admissible entry", error.code];
  }
  if (entry.kind === "hold_resolved" && entry.body.outcome === "released") {
    const { hold } = entry.body;
    const next = await standing(tx, entry.log, "usage", entry.index + 1n);
    if (next?.body.hold !== hold) yield [`the usage of hold ${hold} behind it`, "another entry"];
  }
  if (entry.kind === "usage") yield* released(entry, tx);
}

/** Usage of what was held stands behind its release, and is of the same report. */
async function* released({ body, index, log }: EntryOf<"usage">, tx: Sql) {
  const { hold, jws } = body;
  if (hold === undefined) return;
  const before = await standing(tx, log, "hold_resolved", index - 1n);
  const isReleased = before?.body.hold === hold && before.body.outcome === "released";
  const held = await standing(tx, log, "hold", BigInt(hold));
  if (!isReleased || held?.body.jws !== jws) {
    yield [`usage of hold ${hold} that was released right before`, "usage"] satisfies Misjudged;
  }
}
