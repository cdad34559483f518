/**
 * May this entry be written after this prefix at this instant? Asked under the head lock for every
 * entry that is no report's. Signatures inside `key`, `key_rotated` and `attestation` were verified by
 * the caller.
 */
import { CONTROL_RULES } from "./admit-control.ts";
import { EVIDENCE_RULES } from "./admit-evidence.ts";
import { needsNone } from "./approval.ts";
import { readAttestation, readClaim, readRotation } from "./claim.ts";
import { BODY, BODY_BYTES_MAX, type Body, type Kind } from "./entry.ts";
import { MONTHLY_SHARE, parseFactor } from "./factor.ts";
import { canonical } from "./json.ts";
import { isLogKey } from "./log-key.ts";
import type { Prefix } from "./prefix.ts";
import { misshapen, Problem } from "./problem.ts";
import { utf8Length } from "./text.ts";
import { monthOf, nextMonth, type Tracking } from "./unit.ts";

export type Rule<K extends Kind> = (prefix: Prefix, body: Body<K>, at: string) => void;

/** Kinds without a rule of their own are bound by shape and size alone. */
const RULES: { readonly [K in Kind]?: Rule<K> } = {
  log() {
    throw new Problem("log-exists"); // index 0, and only there
  },
  attestation,
  enrolment,
  key,
  key_rotated: keyRotated,
  key_revoked: keyRevoked,
  rate_card: rateCard,
  project_class(prefix, body, at) {
    startsLater(prefix.classes(body.project_id), body, at);
  },
  quota,
  pack,
  month_closing: monthClosing,
  month_closing_withdrawn: monthClosingWithdrawn,
  month_closed: monthClosed,
  /** Whether it is the next of its log only those can say who have read all entries of its kind. */
  log_key(prefix, body) {
    if (!isLogKey(prefix.id, body)) throw new Problem("inadmissible-key");
  },
  ...CONTROL_RULES,
  ...EVIDENCE_RULES,
};

/** @throws Problem with the code of the first rule that the entry breaks; `at` is the entry's own */
export function admit<K extends Kind>(prefix: Prefix, kind: K, body: Body<K>, at: string): void {
  const issues = BODY[kind].safeParse(body).error?.issues;
  if (issues !== undefined) {
    const members = issues.map((issue) => issue.path.join("."));
    throw new Problem("invalid-request", { kind, members });
  }
  if (utf8Length(canonical(body)) > BODY_BYTES_MAX) throw new Problem("too-large", { kind });
  // An entry's own rule comes first: nobody is to ask a second person for what may not be.
  RULES[kind]?.(prefix, body, at);
  if ("approval" in body) approved(prefix, kind, body);
}

/** That an approval is one, and of just this, those say who see the entries before (flow/control/decided.ts). */
function approved(prefix: Prefix, kind: Kind, body: Body<Kind> & { approval: string }): void {
  if (prefix.control === "single") {
    if (body.approval !== "") misshapen(kind, "approval");
  } else if (body.approval === "" && !needsNone(prefix, kind, body)) {
    throw new Problem("approval-required");
  }
}

/** Only the first of its key may reach back: later ones would rate again what was rated. */
function startsLater(
  earlier: readonly unknown[],
  { effective_from }: { readonly effective_from: string },
  at: string,
): void {
  if (earlier.length > 0 && effective_from <= at) {
    throw new Problem("starts-in-the-past", { effective_from, at });
  }
}

/** The same range as for reports: whoever holds a key that has ended must not vouch for its counters. */
function attestation(prefix: Prefix, { jws }: Body<"attestation">): void {
  const signed = readAttestation(jws);
  if (signed === undefined) throw new Problem("malformed");
  if (signed.payload.log !== prefix.id) throw new Problem("wrong-log");
  const key = prefix.key(signed.signer);
  if (key === undefined) throw new Problem("unknown-key");
  if (key.trustedUpTo !== undefined && BigInt(signed.payload.counter) > key.trustedUpTo) {
    throw new Problem("key-has-ended");
  }
}

function enrolment(prefix: Prefix, body: Body<"enrolment">, at: string): void {
  const bound = body.namespaces.length > 0;
  if (body.runners.some((runner) => (runner.runner_type !== "instance") !== bound)) {
    throw new Problem("namespaces-needed");
  }
  const trackings = new Map<string, Tracking>();
  for (const runner of body.runners) {
    const { uuid } = runner;
    const known = trackings.get(uuid) ?? prefix.tracking(uuid);
    if (known !== undefined && known !== runner.tracking) {
      throw new Problem("two-trackings", { uuid, tracking: known });
    }
    startsLater(known === undefined ? [] : [known], runner, at);
    trackings.set(uuid, runner.tracking);
  }
}

/**
 * An enrolment is claimed once, within its time, by one key. Only the successor that a rotation has
 * named takes the place of that key, whenever it comes: `key_rotated` first, then this entry. Not if
 * the old key was revoked meanwhile: whoever stole it must not be able to name its heir.
 */
function key(prefix: Prefix, body: Body<"key">, at: string): void {
  const claim = readClaim(body.jws);
  if (claim?.signer !== body.kid) throw new Problem("malformed");
  if (claim.payload.log !== prefix.id) throw new Problem("wrong-log");
  const index = BigInt(body.enrolment);
  const claimed = prefix.enrolment(index);
  if (claimed?.token_sha256 !== claim.payload.token_sha256) throw new Problem("unknown-token");
  if (prefix.key(body.kid) !== undefined) throw new Problem("key-in-use");
  const old = prefix.predecessor(body.kid);
  if (old?.enrolment === index && !old.revoked) return;
  if (prefix.claimed(index)) throw new Problem("token-used");
  if (at > claimed.claim_until) throw new Problem("token-expired");
}

function keyRotated(prefix: Prefix, body: Body<"key_rotated">): void {
  const rotation = readRotation(body.jws);
  if (rotation === undefined) throw new Problem("malformed");
  if (rotation.payload.log !== prefix.id) throw new Problem("wrong-log");
  const old = prefix.key(rotation.signer);
  if (old === undefined) throw new Problem("unknown-key");
  if (old.trustedUpTo !== undefined) throw new Problem("key-has-ended");
  // A key that two rotations named would have two enrolments to succeed to.
  const { thumbprint } = rotation;
  if ((prefix.key(thumbprint) ?? prefix.predecessor(thumbprint)) !== undefined) {
    throw new Problem("key-in-use");
  }
}

/** A rotated key may still be revoked, and a revoked one revoked again to an earlier counter. */
function keyRevoked(prefix: Prefix, body: Body<"key_revoked">): void {
  const state = prefix.key(body.kid);
  if (state === undefined) throw new Problem("not-found");
  const { revoked, trustedUpTo } = state;
  if (revoked && trustedUpTo !== undefined && BigInt(body.last_trusted_counter) >= trustedUpTo) {
    throw new Problem("key-has-ended");
  }
}

function rateCard(prefix: Prefix, body: Body<"rate_card">, at: string): void {
  assertFactors(prefix, body);
  startsLater(prefix.cards(body.tracking), body, at);
}

/** @throws Problem `invalid-factor`, `project-factors-not-applicable` */
export function assertFactors(
  prefix: Prefix,
  body: Pick<Body<"rate_card">, "project_factors" | "runner_factors" | "tracking">,
): void {
  for (const [name, text] of Object.entries(body.runner_factors)) {
    // A machine has one factor for all namespaces, so it is no share of anybody's minutes.
    if (parseFactor(text) === undefined) throw new Problem("invalid-factor", { name, text });
  }
  for (const [name, text] of Object.entries(body.project_factors)) {
    if (text !== MONTHLY_SHARE && parseFactor(text) === undefined) {
      throw new Problem("invalid-factor", { name, text });
    }
  }
  // Discounts by kind of project are GitLab.com's; elsewhere a class must not change a charge.
  const discounts = prefix.log.platform === "dotcom" && body.tracking === "hosted";
  if (!discounts && Object.keys(body.project_factors).length > 0) {
    throw new Problem("project-factors-not-applicable");
  }
}

/** Versions count within their source; one that stands is never written again. */
function quota(prefix: Prefix, body: Body<"quota">, at: string): void {
  // What stops at the limit has nothing beyond it to bound.
  if (body.beyond === "stop" && body.cap !== "") misshapen("quota", "cap");
  const limits = prefix.limits(body.namespace_id);
  const newest = limits.findLast((limit) => limit.source === body.source);
  if (newest !== undefined && BigInt(newest.source_version) >= BigInt(body.source_version)) {
    throw new Problem("stale-source-version", { stands: newest.source_version });
  }
  startsLater(limits, body, at);
}

/** Which version may follow which only those can say who find a pack's versions (core/pack.ts). */
function pack(_: Prefix, { expires_in, purchased_in }: Body<"pack">): void {
  if (expires_in < purchased_in) misshapen("pack", "expires_in");
}

/** Only when it is over; for how long those say who know the days of delay (flow/month/conditions.ts). */
function monthClosing(prefix: Prefix, { month }: Body<"month_closing">, at: string): void {
  assertNextMonth(prefix, month);
  if (month < monthOf(at)) return;
  throw new Problem("month-not-ready", { missing: [`delay: not before ${nextMonth(month)}`] });
}

/**
 * The month that follows the last closing, or any if there is none.
 *
 * @throws Problem `months-in-order`
 */
export function assertNextMonth({ lastClosing }: Prefix, month: string): void {
  const next = lastClosing === undefined ? month : nextMonth(lastClosing.month);
  if (month !== next) throw new Problem("months-in-order", { next });
}

function monthClosingWithdrawn(prefix: Prefix, body: Body<"month_closing_withdrawn">): void {
  if (prefix.lastClosing?.index !== BigInt(body.closing)) throw new Problem("months-in-order");
}

/** That it is the first end of its month the table `month_ends` says. */
function monthClosed(prefix: Prefix, { closing, month, size }: Body<"month_closed">): void {
  const last = prefix.lastClosing;
  if (last?.index !== BigInt(closing) || last.month !== month) throw new Problem("months-in-order");
  // A checkpoint that does not cover the cut-off anchors nothing.
  if (BigInt(size) <= last.index) misshapen("month_closed", "size");
}
