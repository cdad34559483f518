/** Opens breaks, each once whoever finds it, and ends those of which what was missing has come. */
import { breakBody, type Finding, fingerprint, type Identity } from "../../core/break.ts";
import type { Body } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import { readEnded, readFingerprints, readOpenOf, readOpenOfKey } from "../../store/breaks.ts";
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

/** What no person has done. */
export const SERVICE = "service";

/** Entries of one transaction: reports queue behind it. */
const TOGETHER = 25;

/** @returns how many are new. @throws Problem `busy` and what an append says */
export async function openBreaks(
  { appender, hash, random, sql }: Opening,
  log: string,
  findings: readonly Finding[],
): Promise<number> {
  const found = new Map(findings.map((finding) => [fingerprint(finding, hash), finding]));
  // A look without the head's lock first: almost always all of them stand.
  for (const known of await readFingerprints(sql, log, [...found.keys()])) found.delete(known);
  let opened = 0;
  for (const page of pages([...found])) {
    opened += await appender.together(log, async (put, { tx }) => {
      const known = await readFingerprints(
        tx,
        log,
        page.map(([print]) => print),
      );
      const fresh = page.filter(([print]) => !known.has(print));
      for (const [, finding] of fresh) await put("break", breakBody(finding, salt(random), hash));
      return fresh.length;
    });
  }
  return opened;
}

/** A finding that no longer holds, and the entry that shows it: without one nothing has healed. */
export interface Healed {
  finding: Identity;
  evidence: bigint | undefined;
}

/** @returns how many breaks were open and are ended now. @throws as `openBreaks` */
export async function healBreaks(
  opening: Opening,
  log: string,
  healed: readonly Healed[],
): Promise<number> {
  const evidence = new Map<string, bigint>();
  for (const { evidence: shown, finding } of healed) {
    if (shown !== undefined) evidence.set(fingerprint(finding, opening.hash), shown);
  }
  const open = await readOpenOf(opening.sql, log, [...evidence.keys()]);
  const ended = [...open].flatMap(([print, index]) => {
    const shown = evidence.get(print);
    return shown === undefined ? [] : [{ index, evidence: shown }];
  });
  return await endBreaks(opening, log, ended);
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
