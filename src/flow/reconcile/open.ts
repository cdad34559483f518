/** Opens breaks, each once whoever finds it, and ends those of which what was missing has come. */
import {
  breakBody,
  type Finding,
  fingerprint,
  type Identity,
  isAnother,
} from "../../core/break.ts";
import type { Body } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import { SERVICE } from "../../core/healing.ts";
import { type OpenedBreak, readEnded, readOpened, readOpenOfKey } from "../../store/breaks.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Put } from "../log/commit-entry.ts";

export interface Opening {
  /** As writer. */
  sql: Sql;
  appender: Appender;
  random: Random;
  hash?: Sha256;
}

/** Entries of one transaction: reports queue behind it. */
const TOGETHER = 25;

/** @returns how many are new. @throws Problem `busy` and what an append says */
export async function openBreaks(
  opening: Opening,
  log: string,
  findings: readonly Finding[],
): Promise<number> {
  const { appender, hash, sql } = opening;
  // A look without the head's lock first: almost always all of them stand.
  const unopened = await readUnopened(sql, log, findings, hash);
  let opened = 0;
  for (const page of pages(unopened)) {
    opened += await appender.together(log, async (put, { tx }) => {
      return await openAtHead({ ...opening, put, tx }, log, page);
    });
  }
  return opened;
}

type AtHead = Pick<Opening, "hash" | "random"> & { put: Put; tx: Transaction };

/** As `openBreaks`, in a transaction that holds the log's head. */
export async function openAtHead(
  { hash, put, random, tx }: AtHead,
  log: string,
  findings: readonly Finding[],
): Promise<number> {
  const fresh = await readUnopened(tx, log, findings, hash);
  for (const finding of fresh) await put("break", breakBody(finding, salt(random), hash));
  return fresh.length;
}

async function readUnopened(
  tx: Sql | Transaction,
  log: string,
  findings: readonly Finding[],
  hash?: Sha256,
): Promise<Finding[]> {
  const turns = await readTurns(tx, log, findings, hash);
  return turns.flatMap(({ found, stands }) => (stands === undefined ? [found] : []));
}

/** Of what is found, the breaks of it that are open. */
export async function readOpen<T extends Identity>(
  tx: Sql | Transaction,
  log: string,
  found: readonly T[],
  hash?: Sha256,
): Promise<{ found: T; index: bigint }[]> {
  const turns = await readTurns(tx, log, found, hash);
  return turns.flatMap(({ found, stands }) => {
    return stands?.end === null ? [{ found, index: stands.index }] : [];
  });
}

/** What is found, with the newest break of it: `after` the ones before, if it came again. */
interface Turn<T> {
  found: T;
  stands: OpenedBreak | undefined;
}

/** Each finding once. One that came again costs a look for each time. */
async function readTurns<T extends Identity>(
  tx: Sql | Transaction,
  log: string,
  findings: readonly T[],
  hash?: Sha256,
): Promise<Turn<T>[]> {
  const turns: Turn<T>[] = [];
  let asked = new Map(findings.map((found) => [fingerprint(found, hash), found]));
  while (asked.size > 0) {
    const opened = await readOpened(tx, log, [...asked.keys()]);
    const again = new Map<string, T>();
    for (const [print, found] of asked) {
      const stands = opened.get(print);
      if (stands === undefined || stands.end === null || !isAnother(found, stands)) {
        turns.push({ found, stands });
      } else {
        const next = { ...found, after: stands.end };
        again.set(fingerprint(next, hash), next);
      }
    }
    asked = again;
  }
  return turns;
}

/** Ends those of these breaks that are open. @throws as `openBreaks` */
export async function endBreaks(
  { appender, random }: Opening,
  log: string,
  breaks: readonly { index: bigint; evidence: bigint }[],
): Promise<number> {
  let ended = 0;
  for (const page of pages(breaks)) {
    ended += await appender.together(log, async (put, { tx }) => {
      const gone = await readEnded(
        tx,
        log,
        page.map(({ index }) => index),
      );
      const open = page.filter(({ index }) => !gone.has(index));
      for (const { evidence, index } of open) {
        await put("break_resolved", healedBy(index, evidence, salt(random)));
      }
      return open.length;
    });
  }
  return ended;
}

/**
 * Ends what a key's silence opened, in the transaction of its attestation: from that entry on nothing waits
 * for a break of which the cause is gone.
 *
 * @param heard `delivered`: nothing is left in the spool
 */
export async function endSilence(
  { put, tx, random }: { put: Put; tx: Transaction; random: Random },
  log: string,
  { delivered, evidence, kid }: { delivered: boolean; evidence: bigint; kid: string },
): Promise<void> {
  const over = delivered ? ["missing-attestation", "undelivered"] : ["missing-attestation"];
  for (const index of await readOpenOfKey(tx, log, kid, over)) {
    await put("break_resolved", healedBy(index, evidence, salt(random)));
  }
}

/** What the service itself finds to be gone, and the entry that shows it. */
export function healedBy(index: bigint, evidence: bigint, salt: string): Body<"break_resolved"> {
  return {
    approval: "",
    break: String(index),
    by: SERVICE,
    evidence: String(evidence),
    outcome: "healed",
    reason: "came",
    salt,
    ticket: "none",
  };
}

function pages<T>(items: readonly T[]): T[][] {
  const count = Math.ceil(items.length / TOGETHER);
  return Array.from({ length: count }, (_, i) => items.slice(i * TOGETHER, (i + 1) * TOGETHER));
}
