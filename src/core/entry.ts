/**
 * One record of the log (BYTES §4): the canonical JSON `{ at, body, index, kind, log, prev, v }`.
 * The stored bytes are the hashed bytes; nothing is ever hashed from a re-serialisation.
 */
import { z } from "zod";
import { Factors, IndexOrNone, Jws } from "./body.ts";
import { CONTROL_BODY } from "./control.ts";
import { EVIDENCE_BODY } from "./evidence.ts";
import type { Hash } from "./hash.ts";
import { canonical, parseCanonical } from "./json.ts";
import { decodeBase64, encodeBase64, encodeUtf8 } from "./text.ts";
import {
  ChargeText,
  FractionText,
  HashText,
  InstantText,
  IntegerText,
  Kid,
  LogId,
  MonthText,
  NonEmptyText,
  Platform,
  SaltText,
  Text,
  Tracking,
  Word,
} from "./unit.ts";

export const ENTRY_BYTES_MAX = 65_535;
/** What a body may take of it: the members beside it need fewer than 256 bytes, whatever the kind. */
export const BODY_BYTES_MAX = ENTRY_BYTES_MAX - 256;

export const HOLD_CODES = [
  "key-ended",
  "outside-enrolment",
  "future",
  "over-cap",
  "no-rate",
] as const;
export const HoldCode = z.enum(HOLD_CODES);
export type HoldCode = z.infer<typeof HoldCode>;

export const NotBillable = z.enum(["", "self_managed", "before_billing_from", "failure_reason"]);

export const DISPOSITION_LINES_MAX = 256;
export const DispositionLine = z.strictObject({
  code: z.string().regex(/^[a-z-]{1,40}$/),
  counter: IntegerText,
  digest: HashText,
  index: IndexOrNone,
});
export type DispositionLine = z.infer<typeof DispositionLine>;

export const EnrolledRunner = z.strictObject({
  effective_from: InstantText,
  machine_type: NonEmptyText,
  runner_id: IntegerText,
  runner_type: z.enum(["instance", "group", "project"]),
  tracking: Tracking,
  uuid: NonEmptyText,
});
export type EnrolledRunner = z.infer<typeof EnrolledRunner>;

/** Body of each kind. New kinds are added, none is changed. */
export const BODY = {
  log: z.strictObject({
    billing_from: InstantText,
    control: z.enum(["single", "dual"]),
    duration_cap_ms: IntegerText,
    platform: Platform,
    salt: SaltText,
    skew_ms: IntegerText,
    unique_id: NonEmptyText,
  }),
  usage: z.strictObject({
    billable: z.boolean(),
    billing_month: MonthText,
    card: IntegerText,
    class: NonEmptyText,
    compute_ms: ChargeText,
    enrolment: IntegerText,
    factor: FractionText,
    hold: IntegerText.exactOptional(),
    jws: Jws,
    limit: IndexOrNone,
    machine_type: NonEmptyText,
    not_billable: NotBillable,
    tracking: Tracking,
    usage_month: MonthText,
  }),
  conflict: z.strictObject({ jws: Jws, stands: IntegerText }),
  hold: z.strictObject({ code: HoldCode, jws: Jws }),
  disposition: z.strictObject({
    kid: Kid,
    lines: z.array(DispositionLine).min(1).max(DISPOSITION_LINES_MAX),
    salt: SaltText,
  }),
  attestation: z.strictObject({ jws: Jws }),
  enrolment: z.strictObject({
    by: NonEmptyText,
    claim_until: InstantText,
    namespaces: z.array(IntegerText).max(256),
    runners: z.array(EnrolledRunner).min(1).max(128),
    salt: SaltText,
    token_sha256: HashText,
  }),
  key: z.strictObject({ enrolment: IntegerText, jws: Jws, kid: Kid }),
  key_rotated: z.strictObject({ jws: Jws }),
  key_revoked: z.strictObject({
    by: NonEmptyText,
    instant: InstantText,
    kid: Kid,
    last_trusted_counter: IntegerText,
    reason: NonEmptyText,
    salt: SaltText,
  }),
  rate_card: z.strictObject({
    approval: IndexOrNone,
    by: NonEmptyText,
    effective_from: InstantText,
    not_billable: z.array(Word.min(1)).max(64),
    project_factors: Factors,
    runner_factors: Factors,
    salt: SaltText,
    source: Text,
    tracking: Tracking,
  }),
  project_class: z.strictObject({
    approval: IndexOrNone,
    by: NonEmptyText,
    class: NonEmptyText,
    effective_from: InstantText,
    project_id: IntegerText,
    salt: SaltText,
    source: Text,
  }),
  quota: z.strictObject({
    approval: IndexOrNone,
    beyond: z.enum(["stop", "bill"]),
    by: NonEmptyText,
    cap: z.union([IntegerText, z.literal("")]),
    effective_from: InstantText,
    grace_minutes: IntegerText,
    monthly_minutes: IntegerText,
    namespace_id: IntegerText,
    salt: SaltText,
    source: Text,
    source_version: IntegerText,
  }),
  /** A version of a pack of minutes; one of no minutes takes it back. Packs rate nothing: no control kind. */
  pack: z.strictObject({
    approval: IndexOrNone,
    by: NonEmptyText,
    expires_in: MonthText,
    minutes: IntegerText,
    namespace_id: IntegerText,
    pack_id: NonEmptyText,
    purchased_in: MonthText,
    salt: SaltText,
    source: Text,
    source_version: IntegerText,
  }),
  service: z.strictObject({ schema_sha256: HashText, salt: SaltText, version: NonEmptyText }),
  /** The cut-off of a month. The command that writes it belongs to financial control. */
  month_closing: z.strictObject({
    approval: IndexOrNone,
    by: NonEmptyText,
    month: MonthText,
    salt: SaltText,
  }),
  /** `closing` is the index of the `month_closing` that no longer holds. */
  month_closing_withdrawn: z.strictObject({
    approval: IndexOrNone,
    by: NonEmptyText,
    closing: IntegerText,
    salt: SaltText,
  }),
  /** A key that checkpoints or receipts are signed with from here on, or no longer. */
  log_key: z.strictObject({
    approval: IndexOrNone,
    by: NonEmptyText,
    purpose: z.enum(["checkpoint", "receipt"]),
    salt: SaltText,
    state: z.enum(["added", "retired"]),
    /** C2SP signed-note; named `<origin>` for checkpoints, `<origin>/receipt` for receipts. */
    vkey: NonEmptyText,
  }),
  /** Whether anyone may read the log; the newest counts. */
  visibility: z.strictObject({
    approval: IndexOrNone,
    by: NonEmptyText,
    public: z.boolean(),
    salt: SaltText,
  }),
  /** Another archive stands in for one that was lost; `size` and `root` are of what was sealed then. */
  archive_adopted: z.strictObject({
    by: NonEmptyText,
    reason: NonEmptyText,
    root: HashText,
    salt: SaltText,
    size: IntegerText,
  }),
  ...CONTROL_BODY,
  ...EVIDENCE_BODY,
} as const;

export type Kind = keyof typeof BODY;
export type Body<K extends Kind> = z.infer<(typeof BODY)[K]>;
/** An entry as one of a discriminated union over its kind. */
export type Entry = {
  [K in Kind]: { at: string; body: Body<K>; index: bigint; kind: K; log: string; prev: Hash };
}[Kind];
export type EntryOf<K extends Kind> = Extract<Entry, { kind: K }>;

/** Kinds that decide how later reports are judged; the newest of them is the control index. */
export const CONTROL_KINDS = [
  "enrolment",
  "key",
  "key_rotated",
  "key_revoked",
  "rate_card",
  "project_class",
  "quota",
  "month_closing",
  "month_closing_withdrawn",
  "mode",
] as const satisfies readonly Kind[];

export const GENESIS_PREV: Hash = new Uint8Array(32);

/** @throws Error when the entry would pass 65,535 bytes: callers bound their bodies. */
export function encodeEntry(entry: Entry): Uint8Array {
  const text = canonical({
    at: entry.at,
    body: entry.body,
    index: String(entry.index),
    kind: entry.kind,
    log: entry.log,
    prev: encodeBase64(entry.prev),
    v: "1",
  });
  const bytes = encodeUtf8(text);
  if (bytes.length > ENTRY_BYTES_MAX) throw new Error("entry: over 65,535 bytes");
  return bytes;
}

const Envelope = z.strictObject({
  at: InstantText,
  body: z.unknown(),
  index: IntegerText,
  kind: z.string(),
  log: LogId,
  prev: HashText,
  v: z.literal("1"),
});

/**
 * The strict reader. `malformed`: not the canonical bytes of an entry of this version.
 * `unknown-kind`: a later version's entry, which whoever cannot judge it must say so about.
 */
export function decodeEntry(bytes: Uint8Array): Entry | "malformed" | "unknown-kind" {
  if (bytes.length > ENTRY_BYTES_MAX) return "malformed";
  const envelope = Envelope.safeParse(parseCanonical(bytes));
  if (!envelope.success) return "malformed";
  const { at, index, kind, log, prev } = envelope.data;
  if (!Object.hasOwn(BODY, kind)) return "unknown-kind";
  const body = BODY[kind as Kind].safeParse(envelope.data.body);
  const prevHash = decodeBase64(prev);
  if (!body.success || prevHash === undefined) return "malformed";
  return { at, body: body.data, index: BigInt(index), kind, log, prev: prevHash } as Entry;
}
