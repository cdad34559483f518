/**
 * The entries since the last verification, each derived, judged and linked again from the bytes by the rules of
 * `check`, and beside it the signatures that it leaves to the auditor. What came before is taken as it stands.
 */
import { setImmediate as turn } from "node:timers/promises";
import { verdict } from "../../core/ed25519.ts";
import { decodeEntry } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import { readCompact } from "../../core/jws.ts";
import type { Prefix } from "../../core/prefix.ts";
import { equal } from "../../core/text.ts";
import type { Sql } from "../../store/connect.ts";
import { readPrefix } from "../../store/entries.ts";
import { type EntryRow, entryRows, headRow, openSnapshot } from "../../store/snapshots.ts";
import { finding } from "../check/compare.ts";
import type { Finding } from "../check/event.ts";
import { type Before, Walk } from "../check/walk.ts";
import { recall } from "../log/recall.ts";
import { verifySignature } from "../report/signature.ts";

/** So many entries in one turn of the event loop: 2 ms or so, and requests go on between them. */
const TURN = 16;

export interface Verified {
  /** Entries [from, to) were verified. */
  to: bigint;
  findings: bigint;
}

/**
 * One REPEATABLE READ snapshot, memory for a page, from an index to the head.
 * @param options.signal ends it, by its reason: a service that stops does not wait for a large log
 * @param found told of each finding; an entry of a kind that this version does not know is one
 */
export async function verifyNew(
  { sql, hash, signal }: { sql: Sql; hash: Sha256; signal: AbortSignal },
  log: string,
  from: bigint,
  found: (finding: Finding) => void,
): Promise<Verified> {
  const snapshot = await openSnapshot(sql);
  let findings = 0n;
  const tell = (each: Finding): void => {
    findings += 1n;
    found(each);
  };
  try {
    const before = from === 0n ? undefined : await beforeOf(snapshot.sql, log, from);
    const walk = await Walk.start(snapshot, log, hash, before);
    let walked = 0;
    for (let rows = await walk.page(); rows.length > 0; rows = await walk.page()) {
      for (const row of rows) {
        for await (const event of walk.entry(row)) {
          tell(event.kind === "finding" ? event : unknownKind(row));
        }
        if (!isSigned(row, walk.prefix)) tell(finding(placeOf(row), "bytes", "a signature", "jws"));
        walked += 1;
        if (walked % TURN === 0) await turn(undefined, { signal });
      }
      for (const each of walk.unclaimed()) tell(each);
    }
    const head = await headRow(snapshot.sql, log);
    for await (const each of walk.end(head?.leaf)) tell(each);
    const { leaf, size } = walk.head;
    if (head === undefined || head.size !== size || !equal(head.leaf, leaf)) {
      tell(finding({ log, table: "heads", index: size - 1n }, "leaf", leaf, head?.leaf ?? null));
    }
    return { to: size, findings };
  } finally {
    await snapshot.end();
  }
}

/** What the entries before say; no more is read of them than decides. */
async function beforeOf(sql: Sql, log: string, from: bigint): Promise<Before> {
  const prefix = await recall(sql, log);
  for (const bytes of await readPrefix(sql, log, from)) {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string") throw new Error(`verify: an entry is ${entry}`);
    prefix.apply(entry);
  }
  const [last] = await entryRows(sql, log, from - 1n);
  if (last === undefined) throw new Error("verify: the entry before is missing");
  return { prefix, last };
}

/** Whether what holds a statement of an agent holds it under the key that it names; true where none is held. */
function isSigned({ bytes }: EntryRow, prefix: Prefix | undefined): boolean {
  const entry = decodeEntry(bytes);
  if (typeof entry === "string" || !("jws" in entry.body)) return true;
  const jws = readCompact(entry.body.jws);
  const key = jws && prefix?.key(jws.kid);
  if (jws === undefined || key === undefined) return false;
  return verdict(jws.signature, jws.input, key.publicKey, verifySignature);
}

const placeOf = ({ log, index }: EntryRow) => ({ log, table: "entries", index });

function unknownKind(row: EntryRow): Finding {
  return finding(placeOf(row), "kind", "a kind that this version knows", row.kind);
}
