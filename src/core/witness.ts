/** C2SP tlog-witness: what a log asks of a witness, and how the witness decides. */
import { type Checkpoint, parseCheckpoint, parseSize } from "./checkpoint.ts";
import type { Verify } from "./ed25519.ts";
import { EMPTY_ROOT, type Hash, type Sha256 } from "./hash.ts";
import { openNote, type Vkey } from "./note.ts";
import { formatHashes, parseHashes, verifyConsistency } from "./proof.ts";
import { equal } from "./text.ts";

/** `proof` leads from size `old`, the last that this witness cosigned, to the signed `checkpoint`. */
export interface AddCheckpoint {
  old: bigint;
  proof: Hash[];
  checkpoint: string;
}

/** What a witness knows: whose logs it follows, and the last it cosigned of each. */
export interface WitnessState {
  vkeysOf(origin: string): readonly Vkey[] | undefined;
  last(origin: string): { size: bigint; root: Hash } | undefined;
  verify: Verify;
  hash?: Sha256;
}

/**
 * Status 200: `text` may be cosigned once `checkpoint` is durable as the last of its origin; looking and
 * keeping must be one step. Status 409: the answer's body is `size`, the last that was cosigned.
 */
export type AddCheckpointAnswer =
  | { status: 200; checkpoint: Checkpoint; text: string }
  | { status: 409; size: bigint; problem: string }
  | { status: 400 | 403 | 404 | 422; problem: string };

/** The old size and one hash more than a proof has: enough to see that there are too many. */
const LINES_MAX = 65;

/** Throws on more than 63 hashes. */
export function formatAddCheckpoint({ old, proof, checkpoint }: AddCheckpoint): string {
  return `old ${old}\n${formatHashes(proof)}\n${checkpoint}`;
}

/** Undefined unless the form is exact. The checkpoint is taken as it is: its judge opens it. */
export function parseAddCheckpoint(text: string): AddCheckpoint | undefined {
  const end = text.indexOf("\n\n");
  if (end < 0) return undefined;
  const [first = "", ...lines] = text.slice(0, end).split("\n", LINES_MAX);
  const old = first.startsWith("old ") ? parseSize(first.slice("old ".length)) : undefined;
  const proof = parseHashes(lines);
  if (old === undefined || proof === undefined) return undefined;
  return { old, proof, checkpoint: text.slice(end + 2) };
}

/** The checks in the specification's order, each with its status. */
export function judgeAddCheckpoint(
  { old, proof, checkpoint: note }: AddCheckpoint,
  { vkeysOf, last: lastOf, verify, hash }: WitnessState,
): AddCheckpointAnswer {
  const text = note.slice(0, note.lastIndexOf("\n\n") + 1);
  const checkpoint = parseCheckpoint(text);
  if (checkpoint === undefined) return { status: 400, problem: "not a checkpoint" };
  const { origin, size, root } = checkpoint;
  const vkeys = vkeysOf(origin);
  if (vkeys === undefined) return { status: 404, problem: "unknown log" };
  const opened = openNote(note, vkeys, verify);
  // A witness's key is no log's: at least one signature must be of the log's own kind.
  if ("problem" in opened || opened.verified.length === 0) {
    return { status: 403, problem: "no valid signature by a trusted key" };
  }
  if (old > size) return { status: 400, problem: "old size above the checkpoint's" };
  const last = lastOf(origin) ?? { size: 0n, root: EMPTY_ROOT };
  if (old !== last.size) return { status: 409, size: last.size, problem: "another old size" };
  const consistent =
    old === 0n
      ? proof.length === 0 && (size > 0n || equal(root, EMPTY_ROOT))
      : verifyConsistency({ from: old, to: size, proof, fromRoot: last.root, toRoot: root }, hash);
  if (!consistent) return { status: 422, problem: "the consistency proof does not hold" };
  return { status: 200, checkpoint, text };
}
