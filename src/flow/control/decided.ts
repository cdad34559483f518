/**
 * What the prefix cannot say of an entry that two persons decide about: that the approval it names is of
 * just this entry. Asked under the head's lock, so that nothing comes between; each approval is used
 * once by the key of `approval_uses`.
 */
import { enrolsForMoney, hasApprover, matches } from "../../core/approval.ts";
import { isPartOfRun } from "../../core/beside.ts";
import type { Entry, EntryOf } from "../../core/entry.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readUse } from "../../store/proposals.ts";
import { newestMapping, standing } from "./standing.ts";

/**
 * @param prefix of the entries before it
 * @throws Problem `approval-required`, `approver-needed`
 */
export async function assertDecided(
  tx: Sql | Transaction,
  prefix: Prefix,
  entry: Entry,
): Promise<void> {
  const { body, index, kind, log } = entry;
  if (kind === "mode" && body.control === "dual") {
    const grants = (await newestMapping(tx, log, index)) ?? [];
    if (!hasApprover(grants)) throw new Problem("approver-needed");
  }
  if (prefix.control === "single") return;
  if (kind === "enrolment" && enrolsForMoney(prefix, body)) {
    return await assertApproved(tx, entry, index - 1n);
  }
  if (!("approval" in body)) return;
  if (body.approval !== "") return await assertApproved(tx, entry, BigInt(body.approval));
  // The first has nobody to approve it; without one nobody could ever approve anything.
  if (kind === "role_mapping" && (await newestMapping(tx, log, index)) !== undefined) {
    throw new Problem("approval-required");
  }
}

async function assertApproved(
  tx: Sql | Transaction,
  entry: Entry,
  approval: bigint,
): Promise<void> {
  const { body, kind, log, at } = entry;
  const approved = await standing(tx, log, "approval", approval);
  const asked = approved && (await standing(tx, log, "proposal", BigInt(approved.body.proposal)));
  const decided =
    asked !== undefined && isPartOfRun(entry)
      ? await isOfRun(tx, entry, approval)
      : asked !== undefined && matches(asked.body, kind, body, at);
  if (!decided) throw new Problem("approval-required");
}

/** What a credit run gives comes under its approval, and names the run. */
async function isOfRun(tx: Sql | Transaction, entry: Entry, approval: bigint): Promise<boolean> {
  const index = await readUse(tx, entry.log, approval);
  const run = index === undefined ? undefined : await standing(tx, entry.log, "credit_run", index);
  if (run === undefined) return false;
  // A pack keeps its name when another run takes it back.
  const { reverses } = run.body;
  const named = entry.kind === "pack" && reverses !== "" ? reverses : String(run.index);
  return runOf(entry) === named;
}

function runOf(entry: Entry): string | undefined {
  if (entry.kind === "adjustment") return entry.body.credit_run;
  return entry.kind === "pack" ? packRun(entry) : undefined;
}

/** Named by its run and its namespace (core/beside.ts). */
function packRun({ body }: EntryOf<"pack">): string | undefined {
  const [run, namespace] = body.pack_id.split("/");
  return namespace === body.namespace_id ? run : undefined;
}
