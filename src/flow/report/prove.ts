/** Keeps a receipt's promises, or shows that they cannot be kept: proofs of all that it names. */
import { z } from "zod";
import { JWS_CHARS_MAX } from "../../core/body.ts";
import { type Hash, leafHash } from "../../core/hash.ts";
import { Problem } from "../../core/problem.ts";
import {
  coversResults,
  type Receipt,
  ReceiptResult,
  readReceipt,
  verifyReceipt,
} from "../../core/receipt.ts";
import { encodeBase64 } from "../../core/text.ts";
import { IntegerText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { readBytes } from "../../store/entries.ts";
import { readLogKeys } from "../../store/registers.ts";
import type { Keyring } from "../key/keyring.ts";
import { checkpointAt, type Proofs, proveConsistency, proveInclusion } from "../log/prove.ts";
import type { ProofRoom } from "./proof-room.ts";
import { verifySignature } from "./signature.ts";

export const RESULTS_MAX = 500;

/** A receipt with all the results that it was given for. */
export const Promised = z.strictObject({
  receipt: z.string().min(1).max(JWS_CHARS_MAX),
  results: z.array(ReceiptResult).min(1).max(RESULTS_MAX),
  /** Of the checkpoint that the asker has. */
  since: IntegerText.optional(),
});
export type Promised = z.infer<typeof Promised>;

/**
 * The entry's bytes in base64: that an entry stands there is half of a promise, and that it is what the
 * code says the other. Hashes in base64, the leaf's sibling first, in the tree of the checkpoint.
 */
export interface ProvenEntry {
  index: string;
  entry: string;
  hashes: string[];
}

/** Without bytes where another entry than the promised one stands: it may be somebody else's. */
export type ProvenPromise = Omit<ProvenEntry, "entry"> & { entry?: string };

export interface Kept {
  /** The published one, with all its signatures. */
  checkpoint: string;
  /** Of each index among the results that the checkpoint covers, once. */
  proofs: ProvenPromise[];
  /** From the size that was asked from, where the checkpoint is no smaller. */
  consistency?: string[];
  /** Every `log_key` that the checkpoint covers: whoever trusts a key of the log learns the others. */
  keys: ProvenEntry[];
}

export interface Keeping extends Proofs {
  /** As reader. */
  sql: Sql;
  keyring: Keyring;
  room: ProofRoom;
}

/**
 * Proofs are not held against the results: if they do not fit, that is what the asker has to see. What
 * nobody signed is found out before anything is looked up or takes the room of others.
 *
 * @throws Problem `invalid-receipt` for one that is not ours, or not of these results; `not-found` for
 *   one that promises no entry, and while nothing of its log is published; `busy`,
 *   `archive-unavailable`; `log-behind` for an entry that is archived and not here
 */
export async function proveReceipt(keeping: Keeping, promised: Promised): Promise<Kept> {
  const { receipt, results } = promised;
  const signed = await readOurs(keeping, receipt);
  const { count, log } = signed;
  const leave = keeping.room.enter({ log, receipt, results: Number(count) });
  try {
    if (!coversResults(signed, results, keeping.hash)) throw new Problem("invalid-receipt");
    if (results.every(({ index }) => index === undefined)) throw new Problem("not-found");
    return await prove(keeping, log, promised);
  } finally {
    leave();
  }
}

async function prove(keeping: Keeping, log: string, { results, since }: Promised): Promise<Kept> {
  const { size, note } = await checkpointAt(keeping, log);
  const keys = await keyIndices(keeping, log, size);
  const promised = promises(results).filter(({ index }) => index < size);
  const wanted = [...new Set([...promised.map(({ index }) => index), ...keys])];
  const paths = await proveInclusion(keeping, log, wanted, size);
  const entries = await readBytes(keeping.sql, log, wanted);
  const path = (index: bigint) => ({
    index: String(index),
    hashes: texts(paths.get(index) ?? []),
  });
  const bytesOf = (index: bigint): Uint8Array => {
    const bytes = entries.get(index);
    if (bytes === undefined) throw new Problem("log-behind");
    return bytes;
  };
  const from = BigInt(since ?? 0);
  const follows = from > 0n && from <= size;
  return {
    checkpoint: note,
    proofs: promised.map(({ index, leaves }) => {
      const bytes = bytesOf(index);
      const kept = leaves.has(encodeBase64(leafHash(bytes, keeping.hash)));
      return { ...path(index), ...(kept && { entry: encodeBase64(bytes) }) };
    }),
    ...(follows && { consistency: texts(await proveConsistency(keeping, log, from, size)) }),
    keys: keys.map((index) => ({ ...path(index), entry: encodeBase64(bytesOf(index)) })),
  };
}

/** Each index once, with all leaves that were promised to be there. */
function promises(results: readonly ReceiptResult[]): { index: bigint; leaves: Set<string> }[] {
  const leaves = new Map<string, Set<string>>();
  for (const { index, leaf } of results) {
    if (index === undefined) continue;
    const there = leaves.get(index) ?? new Set();
    leaves.set(index, leaf === undefined ? there : there.add(leaf));
  }
  return Array.from(leaves, ([index, there]) => ({ index: BigInt(index), leaves: there }));
}

/** @throws Problem `invalid-receipt` unless a key signed it that is or was the log's */
async function readOurs({ keyring }: Keeping, text: string): Promise<Receipt> {
  const receipt = readReceipt(text);
  if (receipt === undefined) throw new Problem("invalid-receipt");
  const { jws, payload } = receipt;
  const vkey = await keyring.receiptKey(payload.log, jws.kid);
  if (vkey === undefined || !verifyReceipt(receipt, vkey, verifySignature)) {
    throw new Problem("invalid-receipt");
  }
  return payload;
}

async function keyIndices({ sql }: Keeping, log: string, size: bigint): Promise<bigint[]> {
  const entries = await readLogKeys(sql, [log]);
  return entries.map(({ index }) => index).filter((index) => index < size);
}

function texts(hashes: readonly Hash[]): string[] {
  return hashes.map((hash) => encodeBase64(hash));
}
