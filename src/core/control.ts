/**
 * Bodies of the entries of financial control: who may do what, what two persons decided, months
 * and corrections. Part of the one table in `entry.ts`.
 */
import { z } from "zod";
import { APPROVED, CAUSE, IndexOrNone, Jws, PERSON } from "./body.ts";
import {
  ComputeMsText,
  HashText,
  InstantText,
  IntegerText,
  MonthText,
  NonEmptyText,
  SaltText,
  SignedChargeText,
  SignedComputeMsText,
  Text,
} from "./unit.ts";

export const ACTIONS = [
  "account",
  "adjustment",
  "break_resolved",
  "conflict_resolved",
  "credit_run",
  "enrolment",
  "hold_resolved",
  "log_key",
  "mode",
  "month_closing",
  "month_closing_withdrawn",
  "pack",
  "project_class",
  "quota",
  "rate_card",
  "role_mapping",
  "visibility",
] as const;
/** A kind of entry that a proposal asks for. */
export const Action = z.enum(ACTIONS);
export type Action = z.infer<typeof Action>;

export const CONTENT_CHARS_MAX = 24_000;

/** A key of an issuer of ID tokens as a JWK (RFC 7517) of public members only. */
export const IssuerJwk = z.union([
  z.strictObject({ e: Text, kty: z.literal("RSA"), n: z.string().max(1_400) }),
  z.strictObject({ crv: z.enum(["P-256", "P-384"]), kty: z.literal("EC"), x: Text, y: Text }),
  z.strictObject({ crv: z.literal("Ed25519"), kty: z.literal("OKP"), x: Text }),
]);
export type IssuerJwk = z.infer<typeof IssuerJwk>;

export const ROLES = [
  "provisioner",
  "platform",
  "operator",
  "finance",
  "approver",
  "auditor",
  "witness",
  "viewer",
  "portal",
] as const;

/** Whoever holds this value of this claim of this issuer has the role on this log. */
export const MappedRole = z.strictObject({
  claim: NonEmptyText,
  issuer: NonEmptyText,
  namespaces: z.union([z.literal("*"), z.array(IntegerText).max(256)]),
  role: z.enum(ROLES),
  value: Text,
});
export type MappedRole = z.infer<typeof MappedRole>;

export const ADJUSTMENT_LINES_MAX = 128;
/**
 * `amount` is added to what was charged, and is negative for a credit. `entry` is the usage that it is about, or
 * `""` for a namespace's month. `reverses` is `<index>/<line>` of an adjustment's line, or `""`.
 */
export const AdjustmentLine = z.strictObject({
  amount: SignedChargeText,
  entry: IndexOrNone,
  namespace_id: IntegerText,
  project_id: z.union([IntegerText, z.literal("")]),
  reverses: z.union([z.string().regex(/^[0-9]{1,19}\/[0-9]{1,3}$/), z.literal("")]),
  usage_month: MonthText,
});
export type AdjustmentLine = z.infer<typeof AdjustmentLine>;

export const CONTROL_BODY = {
  /**
   * What the log is under from here on. `dual`: whatever a person changes needs a second one, for ever.
   * `sources` are the systems whose events change limits, packs, classes and accounts without a person.
   */
  mode: z.strictObject({
    ...APPROVED,
    billing_from: InstantText,
    control: z.enum(["single", "dual"]),
    sources: z.array(NonEmptyText).max(64),
  }),
  /** All of it at once: what an earlier one gave and this one does not is gone. */
  role_mapping: z.strictObject({ ...APPROVED, grants: z.array(MappedRole).max(128) }),
  /** A key that an approval's token verifies with, as it was fetched from its issuer. */
  issuer_key: z.strictObject({
    by: NonEmptyText,
    issuer: NonEmptyText,
    jwk: IssuerJwk,
    kid: Text,
    salt: SaltText,
  }),
  /**
   * The leaf hash of this entry, base64url, is the nonce of the approver's ID token. `content` is the canonical
   * JSON of the body that is asked for, without `approval`, `by` and `salt`; `effect` what it would do, likewise.
   */
  proposal: z.strictObject({
    action: Action,
    ...PERSON,
    ...CAUSE,
    content: z.string().min(2).max(CONTENT_CHARS_MAX),
    effect: z.string().min(2).max(CONTENT_CHARS_MAX),
    expires_at: InstantText,
    proposer: z.strictObject({ issuer: NonEmptyText, subject: NonEmptyText }),
  }),
  /** `token` is the approver's own ID token; `issuer_key` the entry whose key it verifies with. */
  approval: z.strictObject({
    by: NonEmptyText,
    issuer_key: IntegerText,
    proposal: IntegerText,
    salt: SaltText,
    token: Jws,
  }),
  proposal_ended: z.strictObject({
    ...PERSON,
    outcome: z.enum(["refused", "withdrawn", "expired"]),
    proposal: IntegerText,
    reason: NonEmptyText,
  }),
  /** Who pays for a namespace, or with `namespace_id` `""` for all others of the instance. */
  account: z.strictObject({
    ...APPROVED,
    account_id: NonEmptyText,
    effective_from: InstantText,
    namespace_id: z.union([IntegerText, z.literal("")]),
    source: Text,
    source_version: IntegerText,
    subscription_id: Text,
  }),
  /** `credit_run` and `first_line` say which lines of a credit run these are; `""` and `"0"` otherwise. */
  adjustment: z.strictObject({
    ...APPROVED,
    ...CAUSE,
    billing_month: MonthText,
    credit_run: IndexOrNone,
    first_line: IntegerText,
    lines: z.array(AdjustmentLine).min(1).max(ADJUSTMENT_LINES_MAX),
  }),
  /**
   * `lines_sha256` is of all lines together, each as canonical JSON and a newline; `total` their sum.
   * `reverses` is the credit run that this one takes back, or `""`.
   */
  credit_run: z.strictObject({
    ...APPROVED,
    ...CAUSE,
    form: z.enum(["zero_rate", "credit", "goodwill_pack"]),
    lines: IntegerText,
    lines_sha256: HashText,
    reverses: IndexOrNone,
    selection: z.string().min(2).max(CONTENT_CHARS_MAX),
    total: SignedComputeMsText,
  }),
  /** Two persons let a held report in, or refuse it for good. */
  hold_resolved: z.strictObject({
    ...APPROVED,
    ...CAUSE,
    hold: IntegerText,
    outcome: z.enum(["released", "rejected"]),
  }),
  /** `corrected`: an adjustment of what stands came before this entry. */
  conflict_resolved: z.strictObject({
    ...APPROVED,
    ...CAUSE,
    conflict: IntegerText,
    outcome: z.enum(["stands", "corrected"]),
  }),
  /**
   * After the cut-off: what the month is, for ever. Digests are of canonical lines (docs/months.md). `anchor` says
   * that somebody outside holds the checkpoint of `size` entries, and `anchored_by` who: witnesses and when they
   * signed, or the archive's lock and until when. `none` is UNANCHORED, by nobody. `close_delay_days` is what the
   * operator lets pass between a month's end and its cut-off. `exports` are the month's files (docs/exports.md),
   * in the order of their names. `statement_sha256` is of the statement's text, which says where this entry stands
   * and nothing else that comes after the cut-off.
   */
  month_closed: z.strictObject({
    accounts_sha256: HashText,
    allocations: IntegerText,
    allocations_sha256: HashText,
    anchor: z.enum(["none", "witnessed", "locked"]),
    anchored_by: z.array(z.strictObject({ at: InstantText, name: NonEmptyText })).max(16),
    by: NonEmptyText,
    close_delay_days: IntegerText,
    closing: IntegerText,
    exports: z
      .array(z.strictObject({ name: NonEmptyText, rows: IntegerText, sha256: HashText }))
      .max(16),
    month: MonthText,
    packs_sha256: HashText,
    rollups_sha256: HashText,
    root: HashText,
    salt: SaltText,
    size: IntegerText,
    statement_sha256: HashText,
    totals: z.strictObject({
      adjustment_compute_ms: SignedComputeMsText,
      billable_compute_ms: ComputeMsText,
      compute_ms: ComputeMsText,
      duration_ms: IntegerText,
      jobs: IntegerText,
    }),
  }),
} as const;
