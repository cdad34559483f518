/**
 * What `admit` cannot say of an entry that is asked for, since it takes a look at the tables beside the
 * log: asked when it is proposed, and again under the head's lock when it is written.
 */
import { type Content, hasApprover } from "../../core/approval.ts";
import type { Action, MappedRole } from "../../core/control.ts";
import type { Body } from "../../core/entry.ts";
import { goesByName } from "../../core/id-token.ts";
import { assertFollows, assertOutside } from "../../core/pack.ts";
import type { Prefix } from "../../core/prefix.ts";
import { misshapen, Problem } from "../../core/problem.ts";
import { Tracking } from "../../core/unit.ts";
import { readAccountVersions } from "../../store/accounts.ts";
import type { Transaction } from "../../store/connect.ts";
import { readPack } from "../../store/packs.ts";
import type { Issuer } from "../authenticate.ts";
import { assertRun } from "../credit/rule.ts";
import { assertNoneUnderWay } from "../credit/written.ts";
import { assertConflictEnd, assertHoldEnd } from "../hold/open.ts";
import type { Keyring } from "../key/keyring.ts";
import { assertNextLogKey } from "../key/log-key.ts";
import { assertAccount } from "../money/account.ts";
import { assertHandMade } from "../money/adjust.ts";
import { assertReady } from "../month/close.ts";
import { assertOpen } from "../month/withdraw.ts";
import { assertBreakEnd } from "../reconcile/end.ts";
import { decodedAs } from "../usage/show.ts";
import { newestMapping } from "./standing.ts";

/** The log as it stands up to its head. */
export interface Deciding {
  readonly tx: Transaction;
  readonly prefix: Prefix;
  /** Of the entry that would be written now. */
  readonly at: string;
  readonly keyring: Keyring;
  readonly closeDelayDays: bigint;
  /** Whose tokens this service can verify. */
  readonly issuers: readonly Pick<Issuer, "issuer">[];
}

/** @throws Problem of what may not be written */
type Rule<A extends Action> = (deciding: Deciding, body: Body<A>) => Promise<void>;

export const RULES_BESIDE: { readonly [A in Action]?: Rule<A> } = {
  account: assertAccount,
  adjustment: assertHandMade,
  break_resolved: async ({ tx, prefix }, body) => await assertBreakEnd(tx, prefix.id, body),
  conflict_resolved: assertConflictEnd,
  credit_run: assertRun,
  hold_resolved: assertHoldEnd,
  log_key: async ({ tx, prefix, keyring }, body) => {
    await assertNextLogKey(keyring, { tx, log: prefix.id }, body);
  },
  month_closing: async (deciding, body) => {
    await assertReady(deciding, body);
  },
  month_closing_withdrawn: async ({ tx, prefix }, body) => {
    await assertOpen(tx, prefix.id, body);
  },
  // Its lines come under what the log was under when the run was decided.
  mode: async ({ tx, prefix, issuers }, { control }) => {
    await assertNoneUnderWay(tx, prefix.id);
    if (control === "dual") assertReachable(issuers, (await newestMapping(tx, prefix.id)) ?? []);
  },
  pack: async ({ tx, prefix }, body) => {
    assertOutside(body);
    const found = await readPack(tx, prefix.id, body);
    assertFollows(found && decodedAs("pack", found.bytes).body, body);
  },
  role_mapping: async ({ prefix, issuers }, { grants }) => {
    // Not of `admit`, which is asked of mappings that stand, too.
    if (grants.some(goesByName)) misshapen("role_mapping", "grants");
    if (prefix.control === "dual") assertReachable(issuers, grants);
  },
};

/**
 * An approver of an issuer that this service does not know could never approve anything.
 *
 * @throws Problem `approver-needed`
 */
function assertReachable(issuers: Deciding["issuers"], grants: readonly MappedRole[]): void {
  const known = new Set(issuers.map(({ issuer }) => issuer));
  if (!hasApprover(grants.filter(({ issuer }) => known.has(issuer)))) {
    throw new Problem("approver-needed");
  }
}

/** Whether it is the first of its key, which alone may start when it is written and not after it. */
export async function isFirst(
  { tx, prefix }: Pick<Deciding, "tx" | "prefix">,
  action: Action,
  content: Content,
): Promise<boolean> {
  const key = (member: string): string => String(content[member]);
  switch (action) {
    case "account": {
      return (await readAccountVersions(tx, prefix.id, key("namespace_id"))).length === 0;
    }
    case "project_class":
      return prefix.classes(key("project_id")).length === 0;
    case "quota":
      return prefix.limits(key("namespace_id")).length === 0;
    case "rate_card":
      return prefix.cards(Tracking.parse(content["tracking"])).length === 0;
    default:
      return true;
  }
}
