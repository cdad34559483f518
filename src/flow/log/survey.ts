/**
 * What a log's archive proves, and whether the database agrees with it as far as it goes: the tree up
 * to the newest checkpoint from its tiles, held against the signed root and against the bytes of the
 * database's own entries. Reads 32 bytes for each archived entry, and all that the database has.
 */
import type { Checkpoint } from "../../core/checkpoint.ts";
import { GENESIS_PREV } from "../../core/entry.ts";
import { EMPTY_ROOT, type Hash, leafHash, type Sha256 } from "../../core/hash.ts";
import { rootHash } from "../../core/merkle.ts";
import { equal } from "../../core/text.ts";
import { type Edge, EMPTY_EDGE, edgeRoot, grow } from "../../core/tile.ts";
import { claimPath } from "../../store/archive.ts";
import type { Sql } from "../../store/connect.ts";
import { readEntries } from "../../store/entries.ts";
import { type Head, readHead } from "../../store/heads.ts";
import { readSeal, type Seal } from "../../store/seals.ts";
import { transact } from "../../store/transact.ts";
import { type Archived, blocks, inOrder, readLeaves, WIDTH } from "./archived.ts";
import { parseClaim } from "./claim.ts";
import { RecoveryError } from "./recovery.ts";
import type { CheckpointSigner, SignerFor } from "./signed-checkpoint.ts";

export interface Surveying extends Archived {
  /** As writer. */
  sql: Sql;
  signerFor: SignerFor;
  onProgress?: ((done: bigint, of: bigint) => void) | undefined;
}

export interface Survey {
  /** Entries that the database has. */
  head: bigint;
  /** The newest archived checkpoint; its note is `""` while there is none. */
  newest: Omit<Checkpoint, "origin"> & { note: string };
  /** What a seal at the newest checkpoint says. */
  seal: Seal;
  /** How far the log goes at least: to what a sealer claimed after the newest checkpoint, if one did. */
  target: Pick<Checkpoint, "size" | "root">;
  /** Of the target's last entry. */
  leaf: Hash;
  /** Of the archived checkpoints up to the newest: their sizes, ascending, and what the tree gives. */
  roots: ReadonlyMap<bigint, Hash>;
  /** Of the blocks that hold entries from the database's head on. */
  blockRoots: ReadonlyMap<bigint, Hash>;
}

/**
 * @throws RecoveryError `no-checkpoint`, `unknown-signer`, `retired-signer`, `archive-altered`,
 *   `archive-behind`, `log-forked`
 */
export async function survey(surveying: Surveying): Promise<Survey> {
  const { archive, sql, log } = surveying;
  const { head, seal } = await transact(sql, async (tx) => ({
    head: await readHead(tx, log),
    seal: await readSeal(tx, log),
  }));
  const newest = await newestCheckpoint(surveying, head);
  if (seal.size > newest.size) {
    const told = `the database was sealed to ${seal.size}, the archive holds checkpoints to ${newest.size}`;
    throw new RecoveryError("archive-behind", told);
  }
  const target = (await claimedAfter(surveying, newest.size)) ?? newest;
  const sizes = (await archive.sizes(log)).filter((size) => size <= newest.size);
  const tree = new Tree(surveying, head, sizes);
  await climb(surveying, tree, newest);
  const sealed = { size: newest.size, leaf: tree.leaf, edge: tree.edge };
  // Whoever claimed it may have signed it: no other tree may follow that checkpoint any more.
  await climb(surveying, tree, target);
  if (tree.fork !== undefined) {
    const told = `entry ${tree.fork} of the database is not the archived one`;
    throw new RecoveryError("log-forked", told, tree.fork);
  }
  const { leaf, roots, blockRoots } = tree;
  return { head: head?.size ?? 0n, newest, seal: sealed, target, leaf, roots, blockRoots };
}

/** Over the tiles of a tree of this size, up to its root. */
async function climb(
  surveying: Surveying,
  tree: Tree,
  { size, root }: Survey["target"],
): Promise<void> {
  const read = inOrder(blocks(tree.edge.size, size), (block) => readLeaves(surveying, block));
  for await (const { item, value } of read) {
    await tree.take(item.index, value);
    surveying.onProgress?.(tree.edge.size, size);
  }
  if (equal(edgeRoot(tree.edge, surveying.hash), root)) return;
  const told = `the tiles do not give the root of checkpoint ${size}; minutebook-audit verify names what was altered`;
  throw new RecoveryError("archive-altered", told);
}

/** What a sealer was about to sign; its tiles were durable before it said so (claim.ts). */
async function claimedAfter(
  { archive, log }: Surveying,
  from: bigint,
): Promise<Survey["target"] | undefined> {
  const bytes = await archive.get(claimPath(log, from));
  const claimed = parseClaim(bytes);
  if (bytes === undefined || (claimed !== undefined && claimed.size > from)) return claimed;
  throw new RecoveryError("archive-altered", `the claim after ${from} cannot be read`);
}

async function newestCheckpoint(
  { archive, log, signerFor, sql }: Surveying,
  head: Head | undefined,
): Promise<Survey["newest"]> {
  const archived = await archive.latestCheckpoint(log);
  if (archived === undefined) {
    if (head !== undefined) return { size: 0n, root: EMPTY_ROOT, note: "" };
    throw new RecoveryError("no-checkpoint", "neither database nor archive holds this log");
  }
  const { size, note } = archived;
  const signer = await transact(sql, (tx) => signerFor(tx, log, head?.size ?? 0n));
  assertNotRetired(signer, archived);
  const checkpoint = signer.open(note);
  if (checkpoint?.size === size) return { size, root: checkpoint.root, note };
  throw new RecoveryError(
    "unknown-signer",
    `checkpoint ${size} is not signed by a key of this log`,
  );
}

/** @throws RecoveryError `retired-signer` by what the signer knows of the log's keys */
export function assertNotRetired(
  signer: CheckpointSigner,
  { size, note }: { size: bigint; note: string },
): void {
  if (!signer.isRetired(note)) return;
  throw new RecoveryError(
    "retired-signer",
    `checkpoint ${size} rests on a key that an entry below it has retired`,
  );
}

/** Grown from the archived leaves, and held against the database's entries on the way. */
class Tree {
  edge: Edge = EMPTY_EDGE;
  leaf: Hash = GENESIS_PREV;
  /** The first entry that differs. */
  fork: bigint | undefined;
  readonly roots = new Map<bigint, Hash>();
  readonly blockRoots = new Map<bigint, Hash>();
  readonly #surveying: Surveying;
  readonly #head: Pick<Head, "size" | "leaf">;
  readonly #sizes: readonly bigint[];
  #nextSize = 0;

  constructor(surveying: Surveying, head: Head | undefined, sizes: readonly bigint[]) {
    this.#surveying = surveying;
    this.#head = head ?? { size: 0n, leaf: GENESIS_PREV };
    this.#sizes = sizes;
  }

  /** A block's leaves; those that were taken before are passed over. */
  async take(index: bigint, block: readonly Hash[]): Promise<void> {
    const { hash } = this.#surveying;
    const first = this.edge.size;
    const leaves = block.slice(Number(first - index * WIDTH));
    const last = first + BigInt(leaves.length);
    this.fork ??= await this.#difference(first, leaves);
    for (;;) {
      const size = this.#sizes[this.#nextSize];
      if (size === undefined || size > last) break;
      const { edge } = grow(this.edge, leaves.slice(0, Number(size - first)), hash);
      this.roots.set(size, edgeRoot(edge, hash));
      this.#nextSize += 1;
    }
    this.edge = grow(this.edge, leaves, hash).edge;
    this.leaf = leaves.at(-1) ?? this.leaf;
    if (last > this.#head.size) this.blockRoots.set(index, rootHash(block, hash));
  }

  async #difference(first: bigint, leaves: readonly Hash[]): Promise<bigint | undefined> {
    const { sql, log, hash } = this.#surveying;
    const { size, leaf } = this.#head;
    if (first >= size) return undefined;
    const left = size - first;
    const shared = left < BigInt(leaves.length) ? leaves.slice(0, Number(left)) : leaves;
    const rows = await readEntries(sql, log, first, first + BigInt(shared.length));
    const index = shared.findIndex(
      (archived, i) => !isEntry(rows[i], first + BigInt(i), archived, hash),
    );
    if (index >= 0) return first + BigInt(index);
    // A head that names another last entry cannot be gone on from.
    const last = shared.at(-1);
    const ends = first + BigInt(shared.length) === size;
    return ends && last !== undefined && !equal(last, leaf) ? size - 1n : undefined;
  }
}

function isEntry(
  row: { index: bigint; bytes: Uint8Array } | undefined,
  index: bigint,
  leaf: Hash,
  hash: Sha256,
): boolean {
  return row?.index === index && equal(leafHash(row.bytes, hash), leaf);
}
