/**
 * What two persons decide about reports that did not become usage: a held one is let in or refused for good,
 * of a conflict they say which figures hold. Each ends once. Asked when it is proposed, again under the
 * head's lock, and of each such entry by `check`.
 */
import type { Body, EntryOf } from "../../core/entry.ts";
import { judgeReleased } from "../../core/judge.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readJobs } from "../../store/jobs.ts";
import { hasEnded, isAdjusted, type Resolved } from "../../store/resolutions.ts";
import { standing } from "../control/standing.ts";
import { reportOf } from "../usage/show.ts";

export interface Looking {
  readonly tx: Sql | Transaction;
  readonly prefix: Prefix;
  /** Only entries before this one count; left out: all that there are. */
  readonly below?: bigint;
}

/** @throws Problem `not-found`, `already-decided`; of a release `cannot-be-rated`, `job-stands` */
export async function assertHoldEnd(
  looking: Looking,
  { hold, outcome }: Pick<Body<"hold_resolved">, "hold" | "outcome">,
): Promise<void> {
  const held = await openEntry(looking, "hold", hold);
  if (outcome === "released") await letIn(looking, held);
}

/** @throws Problem `not-found`, `already-decided`, `correction-needed` */
export async function assertConflictEnd(
  looking: Looking,
  { conflict, outcome }: Pick<Body<"conflict_resolved">, "conflict" | "outcome">,
): Promise<void> {
  const { tx, prefix, below } = looking;
  const { body, index } = await openEntry(looking, "conflict", conflict);
  if (outcome === "stands") return;
  const between = { after: index, below };
  const corrected = await isAdjusted(tx, prefix.id, BigInt(body.stands), between);
  if (!corrected) throw new Problem("correction-needed", { stands: body.stands });
}

/** @throws Problem `not-found`, `already-decided` */
export async function openEntry<K extends Resolved>(
  looking: Looking,
  kind: K,
  index: string,
): Promise<EntryOf<K>> {
  const { tx, prefix, below } = looking;
  const found = await standing(tx, prefix.id, kind, BigInt(index));
  if (found === undefined) throw new Problem("not-found");
  const ended = await hasEnded(tx, prefix.id, kind, BigInt(index), below);
  if (ended) throw new Problem("already-decided");
  return found;
}

/**
 * The usage that a held report becomes, rated by the entries before the one that lets it in.
 *
 * @throws Problem `cannot-be-rated`, `job-stands`
 */
export async function letIn(
  { tx, prefix, below }: Looking,
  { body: { jws }, index }: EntryOf<"hold">,
): Promise<Body<"usage">> {
  const { kid, report } = reportOf(jws);
  const judged = judgeReleased(prefix, kid, report);
  if (judged.kind === "hold") throw new Problem("cannot-be-rated", { reason: judged.code });
  const { tracking } = judged.body;
  const [job] = await readJobs(tx, prefix.id, [{ tracking, jobId: report.job.id }]);
  if (job !== undefined && (below === undefined || job.index < below)) {
    throw new Problem("job-stands", { stands: String(job.index) });
  }
  return { ...judged.body, hold: String(index), jws };
}
