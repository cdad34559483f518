/** Ends a hold or a conflict at once, where one person may: under dual control two do, by a proposal. */
import { BODY, type Body } from "../../core/entry.ts";
import { write } from "../control/assemble.ts";
import type { Controlling } from "../control/propose.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";

/** Why, and where that is written down. */
export const HoldEnd = BODY.hold_resolved.pick({ reason: true, ticket: true });
export const ConflictEnd = BODY.conflict_resolved.pick({
  outcome: true,
  reason: true,
  ticket: true,
});

type Served = "approval" | "by" | "salt";
export type Resolving = Omit<Controlling, "quota" | "sql">;

interface Asked {
  log: string;
  /** Opaque id of the principal who asks. */
  by: string;
}

/** @throws Problem as `assertHoldEnd` does; `approval-required` */
export async function resolveHold(
  resolving: Resolving,
  asked: Asked,
  content: Omit<Body<"hold_resolved">, Served>,
): Promise<Receipt> {
  return await resolve(resolving, asked, "hold_resolved", content);
}

/** @throws Problem as `assertConflictEnd` does; `approval-required` */
export async function resolveConflict(
  resolving: Resolving,
  asked: Asked,
  content: Omit<Body<"conflict_resolved">, Served>,
): Promise<Receipt> {
  return await resolve(resolving, asked, "conflict_resolved", content);
}

async function resolve(
  { appender, closeDelayDays, issuers, keyring, random }: Resolving,
  { log, by }: Asked,
  action: "conflict_resolved" | "hold_resolved",
  content: Readonly<Record<string, string>>,
): Promise<Receipt> {
  return await appender.together(log, async (put, held) => {
    const deciding = { ...held, closeDelayDays, issuers, keyring };
    const sealed = { approval: "", by, salt: salt(random) };
    return await write(put, deciding, action, { content, sealed });
  });
}
