/**
 * What the tables beside the log must hold because of one entry, from its bytes (DESIGN §1, invariant
 * 1). Checking compares with it, rebuilding writes it; only append says it a first time.
 */
import { type BesideRow, isOfPortal, rowsBeside } from "../../core/beside.ts";
import { type DispositionLine, decodeEntry, type Entry, type EntryOf } from "../../core/entry.ts";
import type { Hash, Sha256 } from "../../core/hash.ts";
import { parseCanonical } from "../../core/json.ts";
import { readCompact } from "../../core/jws.ts";
import type { Prefix } from "../../core/prefix.ts";
import { fact, Report, TYP } from "../../core/report.ts";
import { decodeBase64, encodeUtf8, equal } from "../../core/text.ts";
import { usageColumns } from "../../core/typed.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readNewest } from "../../store/registers.ts";
import {
  bytesOf,
  type JobRow,
  type KeyRow,
  type ReportRow,
  type TypedColumns,
} from "../../store/snapshots.ts";

/** A signed report as an entry holds it. */
export interface Signed {
  kid: string;
  report: Report;
  digest: Hash;
}

export interface Derived {
  typed: TypedColumns;
  jobs: JobRow[];
  reports: ReportRow[];
  keys: KeyRow[];
  /** Of the tables of financial control. */
  beside: BesideRow[];
  /** Of usage, conflict and hold. */
  signed?: Signed;
}

/** Entries that another one names, by index: those before it that there are. */
export type Cited = ReadonlyMap<bigint, Entry>;

const UNTYPED: TypedColumns = {
  tracking: null,
  job_id: null,
  project_id: null,
  namespace_id: null,
  runner_uuid: null,
  runner_id: null,
  machine_type: null,
  duration_ms: null,
  compute_ms: null,
  not_billable: null,
  usage_month: null,
  billing_month: null,
  finished_at: null,
};

/**
 * The entries that this one names, and `besides`; of a `portal-difference`, the acknowledgement before it. Without
 * them it cannot be derived or judged.
 */
export async function citedBy(
  entry: Entry,
  sql: Sql | Transaction,
  besides: readonly bigint[] = [],
): Promise<Cited> {
  const cited = new Map<bigint, Entry>();
  const ack = isOfPortal(entry) && (await readNewest(sql, entry.log, "feed_ack", entry.index));
  const named = [...cites(entry), ...besides, ...(ack ? [ack.index] : [])];
  const indices = named.filter((index) => index < entry.index);
  if (indices.length === 0) return cited;
  for (const { index, bytes } of await bytesOf(sql, entry.log, indices)) {
    const decoded = decodeEntry(bytes);
    if (typeof decoded !== "string") cited.set(index, decoded);
  }
  return cited;
}

function cites(entry: Entry): bigint[] {
  if (entry.kind === "conflict") return [BigInt(entry.body.stands)];
  if (entry.kind !== "disposition") return [];
  return entry.body.lines.filter(({ index }) => index !== "").map(({ index }) => BigInt(index));
}

/**
 * Undefined: the JWS in the entry is no report, of which nothing can be derived. `prefix` are the
 * entries before and this one.
 */
export function derive(
  entry: Entry,
  prefix: Prefix,
  cited: Cited,
  hash: Sha256,
): Derived | undefined {
  const beside = rowsBeside(entry, isOfPortal(entry) ? newestAck(cited) : undefined);
  const nothing = { typed: UNTYPED, jobs: [], reports: [], keys: [], beside };
  switch (entry.kind) {
    case "usage":
    case "conflict":
    case "hold": {
      const signed = readSigned(entry.body.jws, hash);
      if (signed === undefined) return undefined;
      // What was held was answered then, and is answered so for ever.
      const isReleased = entry.kind === "usage" && entry.body.hold !== undefined;
      const reports = isReleased ? [] : [answer(entry, signed)];
      if (entry.kind !== "usage") return { ...nothing, reports, signed };
      return { ...nothing, ...used(entry, signed, prefix, hash), reports, signed };
    }
    case "disposition":
      return { ...nothing, reports: disposed(entry, cited, hash) };
    case "key": {
      const key = prefix.key(entry.body.kid);
      if (key === undefined) return undefined;
      const { kid, publicKey: public_key } = key;
      return { ...nothing, keys: [{ position: entry.index, kid, index: entry.index, public_key }] };
    }
    default:
      return nothing;
  }
}

function newestAck(cited: Cited): EntryOf<"feed_ack"> | undefined {
  let newest: EntryOf<"feed_ack"> | undefined;
  for (const entry of cited.values()) {
    if (entry.kind === "feed_ack" && entry.index > (newest?.index ?? -1n)) newest = entry;
  }
  return newest;
}

/** Strict in form, type and shape; the signature is the auditor's to verify. */
export function readSigned(jws: string, hash: Sha256): Signed | undefined {
  const compact = readCompact(jws);
  if (compact?.typ !== TYP.report) return undefined;
  const report = Report.safeParse(parseCanonical(compact.payload));
  if (!report.success) return undefined;
  return { kid: compact.kid, report: report.data, digest: hash(encodeUtf8(jws)) };
}

function used(
  entry: EntryOf<"usage">,
  { report }: Signed,
  prefix: Prefix,
  hash: Sha256,
): { typed: TypedColumns; jobs: JobRow[] } {
  const { uuid } = report.runner;
  const runner = prefix.runner(uuid, BigInt(entry.body.enrolment), report.usage.finished_at);
  const columns = usageColumns(entry, report, BigInt(runner?.runner_id ?? 0));
  const { index } = entry;
  const { tracking, job_id } = columns;
  return {
    typed: columns,
    jobs: [{ position: index, tracking, job_id, index, fact: fact(report, hash) }],
  };
}

function answer(entry: EntryOf<"usage" | "conflict" | "hold">, signed: Signed): ReportRow {
  const { index } = entry;
  return {
    position: index,
    kid: signed.kid,
    counter: BigInt(signed.report.counter),
    digest: signed.digest,
    index,
    code: entry.kind === "hold" ? entry.body.code : CODE[entry.kind],
    recorded: index,
  };
}

function disposed(
  { body, index: recorded }: EntryOf<"disposition">,
  cited: Cited,
  hash: Sha256,
): ReportRow[] {
  return body.lines
    .filter((line) => accounts(line, cited, hash))
    .map((line) => ({
      position: recorded,
      kid: body.kid,
      counter: BigInt(line.counter),
      digest: digestOf(line),
      index: line.index === "" ? null : BigInt(line.index),
      code: line.code === REUSED ? "duplicate" : line.code,
      recorded,
    }));
}

const CODE = { usage: "accepted", conflict: "conflict" } as const;
/** Notes that a counter came again with other bytes. */
export const REUSED = "counter-reused";

/**
 * A line answers a report, unless it only notes that a counter came again: then the report has an
 * entry of its own, or another line. Of a duplicate the note is the one line there is, and the entry
 * it names is another report's.
 */
function accounts(line: DispositionLine, cited: Cited, hash: Sha256): boolean {
  if (line.code !== REUSED) return true;
  const named = line.index === "" ? undefined : cited.get(BigInt(line.index));
  if (named === undefined || !("jws" in named.body)) return false;
  return !equal(hash(encodeUtf8(named.body.jws)), digestOf(line));
}

function digestOf({ digest }: DispositionLine): Hash {
  const bytes = decodeBase64(digest);
  if (bytes === undefined) throw new Error("derive: a digest that no schema lets in");
  return bytes;
}
