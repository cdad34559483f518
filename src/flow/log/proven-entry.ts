/**
 * Entries that no checkpoint covers are as good as what they prove by themselves: whoever can write to
 * the archive can put any there. Asked of each before a recovery takes it.
 */
import { admit } from "../../core/admit.ts";
import type { Entry } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { Attestation, Report, TYP } from "../../core/report.ts";
import { encodeBase64 } from "../../core/text.ts";
import type { Transaction } from "../../store/connect.ts";
import { readJobs } from "../../store/jobs.ts";
import { readReports } from "../../store/reports.ts";
import { citedBy, type Derived, derive } from "../check/derive.ts";
import { rejudge } from "../check/judgement.ts";
import { unnamed } from "../check/unnamed.ts";
import { provenClaim, provenRotation } from "../key/statement.ts";
import { examine } from "../report/examine.ts";

/** The entries before: what they decide, and the tables that they fill. */
interface Before {
  tx: Transaction;
  prefix: Prefix;
  hash: Sha256;
}

/**
 * Would append have written just this after these, and did an agent's key sign it? Signatures are verified
 * under the keys of the prefix, and reports judged and rated again. What a person, a system or the service
 * itself says has none: limits, packs, accounts, cards, enrolments, revocations, months. Nor does what two
 * persons decided: of a proposal and of the key that verifies its approval either could be anybody's.
 */
export async function isProven(entry: Entry, before: Before): Promise<boolean> {
  switch (entry.kind) {
    case "usage":
      if (entry.body.hold !== undefined) return false; // rests on two persons' word
      return isReport(entry.body.jws, before.prefix) && (await isJudged(entry, before));
    case "conflict":
    case "hold":
      return isReport(entry.body.jws, before.prefix) && (await isJudged(entry, before));
    case "disposition":
      return await isJudged(entry, before);
    case "attestation":
    case "key":
    case "key_rotated":
      return await isAdmitted(entry, before.prefix);
    default:
      return false;
  }
}

type Judged = Extract<Entry, { kind: "usage" | "conflict" | "hold" | "disposition" }>;
type Signed = Extract<Entry, { kind: "attestation" | "key" | "key_rotated" }>;

function isReport(jws: string, prefix: Prefix): boolean {
  const signed = examine(jws, TYP.report, Report, keyIn(prefix));
  return signed.kind === "signed" && signed.payload.log === prefix.id;
}

function keyIn(prefix: Prefix): ({ kid }: { kid: string }) => Uint8Array | undefined {
  return ({ kid }) => prefix.key(kid)?.publicKey;
}

async function isJudged(entry: Judged, { tx, prefix, hash }: Before): Promise<boolean> {
  const cited = await citedBy(entry, tx, await unnamed(entry, prefix, tx, hash));
  const derived = derive(entry, prefix, cited, hash);
  if (derived === undefined) return false;
  const { done } = rejudge(entry, derived, prefix, cited, hash).next();
  return done === true && (await isNew(tx, entry.log, derived));
}

/** A report is accounted for once, and a job has one usage. */
async function isNew(
  tx: Transaction,
  log: string,
  { jobs, reports }: Pick<Derived, "jobs" | "reports">,
): Promise<boolean> {
  const asked = jobs.map(({ tracking, job_id }) => ({
    tracking: tracking === "hosted" ? ("hosted" as const) : ("self_managed" as const),
    jobId: String(job_id),
  }));
  const counters = reports.map(({ kid, counter }) => ({ kid, counter: String(counter) }));
  const standing = await readReports(tx, log, counters);
  const known = new Set(standing.map(nameOf));
  const fresh = new Set(reports.map(nameOf));
  return (
    fresh.size === reports.length &&
    !reports.some((report) => known.has(nameOf(report))) &&
    (await readJobs(tx, log, asked)).length === 0
  );
}

function nameOf(of: { kid: string; counter: bigint | string; digest: Uint8Array }): string {
  return `${of.kid} ${of.counter} ${encodeBase64(of.digest)}`;
}

async function isAdmitted(entry: Signed, prefix: Prefix): Promise<boolean> {
  try {
    await assertSigned(entry, prefix);
    admit(prefix, entry.kind, entry.body, entry.at);
    return true;
  } catch (error) {
    if (error instanceof Problem) return false;
    throw error;
  }
}

/** @throws Problem of what is refused */
async function assertSigned(entry: Signed, prefix: Prefix): Promise<void> {
  switch (entry.kind) {
    case "key":
      provenClaim(entry.body.jws);
      return;
    case "key_rotated":
      await provenRotation(entry.body.jws, async (kid) => prefix.key(kid)?.publicKey);
      return;
    case "attestation": {
      const signed = examine(entry.body.jws, TYP.attestation, Attestation, keyIn(prefix));
      if (signed.kind === "refused") throw new Problem(signed.code);
    }
  }
}
