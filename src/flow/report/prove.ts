/** Keeps a receipt's promises, or shows that they cannot be kept: proofs of all that it names. */
import { z } from "zod";
import { thumbprint } from "../../core/ed25519.ts";
import { JWS_CHARS_MAX } from "../../core/entry.ts";
import type { Hash } from "../../core/hash.ts";
import { parseVkey, type Vkey } from "../../core/note.ts";
import { Problem } from "../../core/problem.ts";
import {
  coversResults,
  type ReadReceipt,
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
import type { Intake } from "./intake.ts";
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

export interface Kept {
  /** The published one, with all its signatures. */
  checkpoint: string;
  /** Of each index among the results that the checkpoint covers, once. */
  proofs: ProvenEntry[];
  /** From the size that was asked from, where the checkpoint is no smaller. */
  consistency?: string[];
  /** Every `log_key` that the checkpoint covers: whoever trusts a key of the log learns the others. */
  keys: ProvenEntry[];
}

export interface Keeping extends Proofs {
  /** As reader. */
  sql: Sql;
  keyring: Keyring;
  /** Of proofs that are being made. */
  intake: Intake;
}

/**
 * Proofs are not held against the results: if they do not fit, that is what the asker has to see.
 *
 * @throws Problem `invalid-receipt` for one that is not ours, or not of these results; `not-found`
 *   while nothing of its log is published; `busy`, `archive-unavailable`; `log-behind` for an entry that
 *   is archived and not here
 */
export async function proveReceipt(
  keeping: Keeping,
  { receipt, results, since }: Promised,
): Promise<Kept> {
  const leave = keeping.intake.enter(results.length, 0);
  try {
    const log = await assertOurs(keeping, receipt, results);
    const { size, note } = await checkpointAt(keeping, log);
    const keys = await keyIndices(keeping, log, size);
    const promised = new Set(results.flatMap(({ index }) => (index === undefined ? [] : [index])));
    const indices = Array.from(promised, BigInt).filter((index) => index < size);
    const wanted = [...new Set([...indices, ...keys])];
    const paths = await proveInclusion(keeping, log, wanted, size);
    const entries = await readBytes(keeping.sql, log, wanted);
    const proven = (index: bigint): ProvenEntry => {
      const bytes = entries.get(index);
      if (bytes === undefined) throw new Problem("log-behind");
      const hashes = texts(paths.get(index) ?? []);
      return { index: String(index), entry: encodeBase64(bytes), hashes };
    };
    const from = BigInt(since ?? 0);
    const follows = from > 0n && from <= size;
    return {
      checkpoint: note,
      proofs: indices.map(proven),
      ...(follows && { consistency: texts(await proveConsistency(keeping, log, from, size)) }),
      keys: keys.map(proven),
    };
  } finally {
    leave();
  }
}

/** @returns the receipt's log */
async function assertOurs(
  { keyring, hash }: Keeping,
  text: string,
  results: readonly ReceiptResult[],
): Promise<string> {
  const receipt = readReceipt(text);
  if (receipt === undefined) throw new Problem("invalid-receipt");
  const { log } = receipt.payload;
  const [keys] = await keyring.standing([log]);
  const vkey = keys && signerOf(receipt, keys.receipt);
  const signed = vkey !== undefined && verifyReceipt(receipt, vkey, verifySignature);
  if (!signed || !coversResults(receipt.payload, results, hash)) {
    throw new Problem("invalid-receipt");
  }
  return log;
}

/** Of all keys that are or were the log's: a receipt is good for ever. */
function signerOf({ jws }: ReadReceipt, keys: readonly { vkey: string }[]): Vkey | undefined {
  return keys
    .map(({ vkey }) => parseVkey(vkey))
    .find((vkey) => vkey !== undefined && thumbprint(vkey.publicKey) === jws.kid);
}

async function keyIndices({ sql }: Keeping, log: string, size: bigint): Promise<bigint[]> {
  const entries = await readLogKeys(sql, [log]);
  return entries.map(({ index }) => index).filter((index) => index < size);
}

function texts(hashes: readonly Hash[]): string[] {
  return hashes.map((hash) => encodeBase64(hash));
}
