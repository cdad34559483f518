/** What ending a hold or a conflict would do, for those who decide about it. */
import type { Content } from "../../core/approval.ts";
import { readEntry } from "../../store/entries.ts";
import type { Asked } from "../control/effects.ts";
import type { Deciding } from "../control/rules.ts";
import { decodedAs, reportOf } from "../usage/show.ts";
import { letIn, openEntry } from "./open.ts";

/** The job, why it is held, and what it would be charged. @throws Problem as `assertHoldEnd` does */
export async function holdEffect(
  deciding: Deciding,
  { hold, outcome }: Asked<"hold_resolved">,
): Promise<Content> {
  const held = await openEntry(deciding, "hold", hold);
  const about = { code: held.body.code, ...aboutOf(held.body.jws) };
  if (outcome === "rejected") return about;
  const { billable, billing_month, compute_ms, factor } = await letIn(deciding, held);
  return { ...about, usage: { billable, billing_month, compute_ms, factor } };
}

/** The job, what was stated of it, and what stands. @throws Problem as `assertConflictEnd` does */
export async function conflictEffect(
  deciding: Deciding,
  { conflict }: Asked<"conflict_resolved">,
): Promise<Content> {
  const { body } = await openEntry(deciding, "conflict", conflict);
  const { bytes } = await readEntry(deciding.tx, deciding.prefix.id, BigInt(body.stands));
  const { compute_ms, jws } = decodedAs("usage", bytes).body;
  const { duration_ms } = reportOf(jws).report.usage;
  const stands = { compute_ms, duration_ms, index: body.stands };
  return { ...aboutOf(body.jws), stands };
}

function aboutOf(jws: string): Record<string, string> {
  const { job, usage } = reportOf(jws).report;
  const { duration_ms, finished_at } = usage;
  return { job_id: job.id, namespace_id: job.root_namespace_id, duration_ms, finished_at };
}
