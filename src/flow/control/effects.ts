/**
 * What a proposal would do, for those who decide about it: by action, from what stands when it is made.
 * Kept on the log as canonical JSON beside what is asked for.
 */
import { type Content, enrolsForMoney } from "../../core/approval.ts";
import type { Action } from "../../core/control.ts";
import type { Body } from "../../core/entry.ts";
import { runnerFactor } from "../../core/factor.ts";
import { canonical, type Json } from "../../core/json.ts";
import { accountAt } from "../../store/accounts.ts";
import { readEntry } from "../../store/entries.ts";
import { readPack } from "../../store/packs.ts";
import { readNewest } from "../../store/registers.ts";
import { creditRunEffect } from "../credit/rule.ts";
import { conflictEffect, holdEffect } from "../hold/effect.ts";
import { adjustmentEffect } from "../money/adjust.ts";
import { conditionsAtHead } from "../month/close.ts";
import { decodedAs } from "../usage/show.ts";
import type { Deciding } from "./rules.ts";

type Served = "approval" | "by" | "salt" | "effective_from";
/** A body as a proposal has it. */
export type Asked<A extends Action> = Omit<Body<A>, Served> & { effective_from?: string };

type Effect<A extends Action> = (
  deciding: Deciding,
  content: Asked<A>,
) => Content | Promise<Content>;

/** Of what takes nothing's place: what it says is all that it does. */
const added = (): Content => ({});

export const EFFECTS: { readonly [A in Action]: Effect<A> } = {
  account: accounted,
  adjustment: adjustmentEffect,
  break_resolved: added,
  conflict_resolved: conflictEffect,
  credit_run: creditRunEffect,
  enrolment: enrolled,
  hold_resolved: holdEffect,
  log_key: named,
  mode: ({ prefix }) => {
    const { billingFrom: billing_from, control, sources } = prefix;
    return { stands: { billing_from, control, sources: [...sources] } };
  },
  month_closing: closed,
  month_closing_withdrawn: closings,
  pack: packed,
  project_class: ({ prefix, at }, { project_id, effective_from = at }) => ({
    stands: { class: prefix.projectClass(project_id, effective_from) },
  }),
  quota: limited,
  rate_card: rated,
  role_mapping: mapped,
  visibility: seen,
};

async function accounted(
  { tx, prefix, at }: Deciding,
  { namespace_id, effective_from = at }: Asked<"account">,
): Promise<Content> {
  const account = await accountAt(tx, prefix.id, namespace_id, effective_from);
  if (account === undefined) return {};
  const { account_id, subscription_id } = account;
  return { stands: { account_id, subscription_id } };
}

/** What each runner is to be, at which factor from then on (`""`: no card has one), and what it is now. */
function enrolled({ prefix }: Deciding, { runners }: Asked<"enrolment">): Content {
  const lines = runners.map(({ effective_from, machine_type, runner_id, tracking, uuid }) => {
    const card = prefix.card(tracking, effective_from);
    const factor = (card && runnerFactor(card, machine_type)) ?? "";
    const asked = { factor, machine_type, runner_id, tracking, uuid };
    const known = prefix.newestLine(uuid);
    if (known === undefined) return asked;
    return { ...asked, stands: { machine_type: known.machine_type, tracking: known.tracking } };
  });
  return { needed: enrolsForMoney(prefix, { runners }), runners: lines };
}

/** With what each precondition was seen by. */
async function closed(deciding: Deciding, content: Asked<"month_closing">): Promise<Content> {
  const seen = await conditionsAtHead(deciding, content.month);
  const preconditions = seen.map(({ code, evidence }) => [code, { ...evidence }]);
  return { ...closings(deciding), preconditions: Object.fromEntries(preconditions) };
}

function closings({ prefix }: Deciding): Content {
  const last = prefix.lastClosing;
  return last === undefined ? {} : { stands: { month: last.month, closing: String(last.index) } };
}

async function packed({ tx, prefix }: Deciding, content: Asked<"pack">): Promise<Content> {
  const found = await readPack(tx, prefix.id, content);
  if (found === undefined) return {};
  const { expires_in, minutes, purchased_in } = decodedAs("pack", found.bytes).body;
  return { stands: { expires_in, minutes, purchased_in } };
}

async function named({ tx, prefix, keyring }: Deciding, { purpose }: Asked<"log_key">) {
  const { entries } = await keyring.standingIn(tx, prefix.id);
  return { stands: entries.named(purpose).map(({ vkey, state }) => ({ vkey, state })) };
}

async function limited(
  { tx, prefix, at }: Deciding,
  { namespace_id, effective_from = at }: Asked<"quota">,
): Promise<Content> {
  const limit = prefix.limit(namespace_id, effective_from);
  if (limit === undefined) return {};
  const { bytes } = await readEntry(tx, prefix.id, limit.index);
  const { beyond, cap, grace_minutes, monthly_minutes } = decodedAs("quota", bytes).body;
  return { stands: { beyond, cap, grace_minutes, monthly_minutes } };
}

/** Factors that become others, each with what it is now; `""` where there is none. */
function rated(
  { prefix, at }: Deciding,
  { tracking, runner_factors, project_factors, effective_from = at }: Asked<"rate_card">,
): Content {
  const card = prefix.card(tracking, effective_from);
  return {
    stands: card === undefined ? "" : String(card.index),
    runner_factors: changed(card?.runner_factors ?? {}, runner_factors),
    project_factors: changed(card?.project_factors ?? {}, project_factors),
  };
}

type Factors = Readonly<Record<string, string>>;

function changed(before: Factors, after: Factors): Content {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const lines = [...names].map((name): [string, Json] => {
    return [name, { from: before[name] ?? "", to: after[name] ?? "" }];
  });
  return Object.fromEntries(lines.filter(([name]) => before[name] !== after[name]));
}

/** What is given is in the content; here is whose place it takes, and what nobody holds any more. */
async function mapped({ tx, prefix }: Deciding, { grants }: Asked<"role_mapping">) {
  const kept = grants.map((grant) => canonical(grant));
  const found = await readNewest(tx, prefix.id, "role_mapping");
  if (found === undefined) return { stands: "", taken: [] };
  const { body, index } = decodedAs("role_mapping", found.bytes);
  const taken = body.grants.filter((grant) => !kept.includes(canonical(grant)));
  return { stands: String(index), taken };
}

async function seen({ tx, prefix }: Deciding): Promise<Content> {
  const found = await readNewest(tx, prefix.id, "visibility");
  const stands = found !== undefined && decodedAs("visibility", found.bytes).body.public;
  return { stands: { public: stands } };
}
