/** What the agent signs (BYTES §2). The payload of a JWS is the canonical JSON of these shapes. */
import { z } from "zod";
import { type Hash, type Sha256, sha256 } from "./hash.ts";
import { canonical } from "./json.ts";
import { encodeUtf8 } from "./text.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  Kid,
  LogId,
  NonEmptyText,
  PositiveText,
  SignedIntegerText,
  Text,
  Word,
} from "./unit.ts";

/** The `typ` of each published version; every version stays readable for ever. */
export const TYP = {
  report: "usage-report-v1+jws",
  attestation: "attestation-v1+jws",
  claim: "claim-v1+jws",
  rotation: "rotation-v1+jws",
  heartbeat: "heartbeat-v1+jws",
} as const;

export const Job = z.strictObject({
  id: IntegerText,
  pipeline_id: IntegerText,
  project_id: IntegerText,
  root_namespace_id: IntegerText,
});

export const Usage = z.strictObject({
  duration_ms: IntegerText,
  failure_reason: Word,
  finished_at: InstantText,
  started_at: InstantText,
  status: Word,
});

export const Report = z.strictObject({
  counter: PositiveText,
  id: Text,
  issued_at: InstantText,
  job: Job,
  log: LogId,
  runner: z.strictObject({
    executor: Text,
    machine_id: Text.exactOptional(),
    system_id: Text,
    uuid: NonEmptyText,
  }),
  usage: Usage,
});
export type Report = z.infer<typeof Report>;

/** Hourly and at shutdown: completeness is claimed up to here and no further. */
export const Attestation = z.strictObject({
  clock_offset_ms: SignedIntegerText,
  counter: IntegerText,
  files: z.array(z.strictObject({ name: NonEmptyText, offset: IntegerText })).max(64),
  issued_at: InstantText,
  log: LogId,
  malformed: IntegerText,
  rejected: IntegerText,
  spool: IntegerText,
});
export type Attestation = z.infer<typeof Attestation>;

export const PublicKey = z.strictObject({
  crv: z.literal("Ed25519"),
  kty: z.literal("OKP"),
  x: Kid, // 32 bytes, base64url: the same form as a thumbprint
});

/** By the new key: it wants the enrolment that the token's digest names. */
export const Claim = z.strictObject({
  issued_at: InstantText,
  log: LogId,
  public_key: PublicKey,
  token_sha256: HashText,
});
export type Claim = z.infer<typeof Claim>;

/** By the old key: names its successor and its own last counter. */
export const Rotation = z.strictObject({
  final_counter: IntegerText,
  issued_at: InstantText,
  log: LogId,
  public_key: PublicKey,
});
export type Rotation = z.infer<typeof Rotation>;

/** Digest of what was measured: same job and fact is a duplicate, whoever signed. */
export function fact(report: Report, hash: Sha256 = sha256): Hash {
  const measured = canonical({
    job: report.job,
    log: report.log,
    runner: { uuid: report.runner.uuid },
    usage: report.usage,
  });
  return hash(encodeUtf8(measured));
}

const CLOCK_TOLERANCE_MS = 2_000n;
const CLOCK_TOLERANCE_DIVISOR = 200n; // 0.5 %

/**
 * Wall-clock span and measured duration differ by more than max(2 s, 0.5 %): the host's clock
 * stepped, or somebody wrote the figures by hand. Kept and billed by duration all the same.
 */
export function clockAnomaly(usage: Report["usage"]): boolean {
  const duration = BigInt(usage.duration_ms);
  const span = BigInt(Date.parse(usage.finished_at) - Date.parse(usage.started_at));
  const difference = span > duration ? span - duration : duration - span;
  const relative = duration / CLOCK_TOLERANCE_DIVISOR;
  return difference > (relative > CLOCK_TOLERANCE_MS ? relative : CLOCK_TOLERANCE_MS);
}
