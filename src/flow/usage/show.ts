/** What is on a log, for whoever asks: logs and keys. Every answer says as of what. */
import { decodeEntry, type EntryOf, type Kind } from "../../core/entry.ts";
import { parseCanonical } from "../../core/json.ts";
import { readCompact } from "../../core/jws.ts";
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { Report } from "../../core/report.ts";
import { encodeBase64url } from "../../core/text.ts";
import type { Platform } from "../../core/unit.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import { type ListedLog, listLogs } from "../../store/logs.ts";
import { type RegisteredEntry, readRegister } from "../../store/registers.ts";
import { transact } from "../../store/transact.ts";
import { catchUp, recall } from "../log/recall.ts";

export interface Showing {
  /** As reader. */
  sql: Sql;
}

export interface ShownLog {
  log: string;
  unique_id: string;
  platform: Platform;
  size: string;
  sealed: string;
}

/** Entries 0 … as_of−1 were looked at, of which 0 … sealed−1 are covered by a checkpoint. */
export interface AsOf {
  log: string;
  as_of: string;
  sealed: string;
}

/** Items of a page; `next`, where there is more, is the `after` of the next page. */
export interface Page<Item> extends AsOf {
  items: Item[];
  next?: string;
}

export interface ShownReport {
  kid: string;
  jws: string;
  report: Report;
}

export interface ShownKey {
  kid: string;
  index: string;
  /** base64url, as in a JWK. */
  public_key: string;
  enrolment: string;
  runners: string[];
  namespaces: string[];
  revoked: boolean;
  /** Highest counter that is welcome; absent while the key has not ended. */
  trusted_up_to?: string;
}

/** What of a register is asked for: the namespaces that may be seen, and where the page begins. */
export interface Search {
  log: string;
  /** Absent: all of the log. */
  visible?: readonly bigint[] | undefined;
  after?: bigint | undefined;
}

const PAGE = 500;

export async function showLogs({ sql }: Showing): Promise<ShownLog[]> {
  const logs = await listLogs(sql);
  return logs.map(({ log, size, sealed, genesis }) => {
    const { unique_id, platform } = decodedAs("log", genesis).body;
    return { log, unique_id, platform, size: String(size), sealed: String(sealed) };
  });
}

/** @throws Problem `not-found` */
export async function showKeys({ sql }: Showing, { log, after }: Search): Promise<Page<ShownKey>> {
  const [listed] = await listLogs(sql, log);
  const head = await readHead(sql, log);
  if (listed === undefined || head === undefined) throw new Problem("not-found");
  const prefix = await recall(sql, log);
  await catchUp(sql, prefix, head.controlIndex);
  const found = await readRegister(sql, log, "key", { after: after ?? -1n, limit: PAGE });
  const standing = found.filter(({ index }) => index < head.size);
  const items = standing.map(({ bytes }) => shownKey(prefix, decodedAs("key", bytes).body.kid));
  return { ...asOf({ ...listed, size: head.size }), items, ...nextOf(standing) };
}

function shownKey(prefix: Prefix, kid: string): ShownKey {
  const key = prefix.key(kid);
  const enrolment = key && prefix.enrolment(key.enrolment);
  if (key === undefined || enrolment === undefined)
    throw new Error("show: a key without its enrolment");
  return {
    kid,
    index: String(key.index),
    public_key: encodeBase64url(key.publicKey),
    enrolment: String(key.enrolment),
    runners: [...new Set(enrolment.runners.map(({ uuid }) => uuid))],
    namespaces: enrolment.namespaces,
    revoked: key.revoked,
    ...(key.trustedUpTo !== undefined && { trusted_up_to: String(key.trustedUpTo) }),
  };
}

export function asOf({ log, size, sealed }: ListedLog): AsOf {
  return { log, as_of: String(size), sealed: String(sealed) };
}

/** What stands on our own log was let in by the strict reader, so it can be read. */
export function reportOf(jws: string): ShownReport {
  const compact = readCompact(jws);
  const report = compact && Report.safeParse(parseCanonical(compact.payload)).data;
  if (compact === undefined || report === undefined) throw new Error("show: no report in an entry");
  return { kid: compact.kid, jws, report };
}

export function decodedAs<K extends Kind>(kind: K, bytes: Uint8Array): EntryOf<K> {
  const entry = decodeEntry(bytes);
  if (typeof entry === "string" || entry.kind !== kind) throw new Error(`show: no ${kind} entry`);
  return entry as EntryOf<K>;
}

/** One snapshot, so that `as_of` holds for every item. */
export function snapshot<T>(sql: Sql, look: (tx: Transaction) => Promise<T>): Promise<T> {
  return transact(sql, look, "isolation level repeatable read read only");
}

function nextOf(found: readonly RegisteredEntry[]): { next?: string } {
  const last = found.at(-1);
  return last === undefined || found.length < PAGE ? {} : { next: String(last.index) };
}
