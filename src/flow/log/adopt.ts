/**
 * Another archive in the place of one that was lost for good: everything that was sealed goes into it
 * from the database, and an entry says who answers for that. Until the newest checkpoint is in it, which
 * comes last, the guard refuses the log; what is written meanwhile is that entry alone.
 */

import { decodeEntry } from "../../core/entry.ts";
import type { Sha256 } from "../../core/hash.ts";
import { Problem } from "../../core/problem.ts";
import { decodeUtf8, encodeBase64, encodeUtf8, equal } from "../../core/text.ts";
import { edgeRoot, parseTilePath, TILE_WIDTH } from "../../core/tile.ts";
import { type Archive, checkpointPath, claimPath, cosignaturePath } from "../../store/archive.ts";
import { readSizes, readStored, type StoredCheckpoint } from "../../store/checkpoints.ts";
import type { Transaction } from "../../store/connect.ts";
import { readCosignatures } from "../../store/cosignatures.ts";
import { readNewest } from "../../store/registers.ts";
import { EMPTY_SEAL, keepWaiting, readSeal, type Seal } from "../../store/seals.ts";
import { witnessBeyond } from "../../store/submissions.ts";
import { transact } from "../../store/transact.ts";
import type { Random } from "../clock.ts";
import { openAppender } from "./append.ts";
import { salt } from "./chain.ts";
import { claimOf } from "./claim.ts";
import { extend } from "./extend.ts";
import type { Guard } from "./guard.ts";
import { lay } from "./lay.ts";
import { RecoveryError } from "./recovery.ts";
import { type Sealer, seal } from "./seal.ts";

export interface Adopting extends Sealer {
  log: string;
  hash: Sha256;
  random: Random;
  onProgress?: (done: bigint, of: bigint) => void;
}

export interface Adopted {
  /** What was sealed when the archive was lost. */
  size: bigint;
  /** Of the entry that says so. */
  index: bigint;
  /** Size of the checkpoint that covers it. */
  sealed: bigint;
}

const LEVEL_BITS = 8n;

/**
 * May be cut short anywhere and run again.
 *
 * @param who.by opaque id of a principal
 * @param who.despiteWitness adopts also where a witness is known to be ahead: the entry's reason says so
 * @throws RecoveryError `nothing-lost`, `archive-contradiction`, `log-forked`, `unknown-signer`,
 *   `witness-ahead`; Problem `invalid-request`, `busy`, `not-found`, `archive-unavailable`
 */
export async function adopt(
  adopting: Adopting,
  { by, reason, despiteWitness = false }: { by: string; reason: string; despiteWitness?: boolean },
): Promise<Adopted> {
  const { archive, log, sql } = adopting;
  const newest = await newestStored(adopting);
  const { size } = newest;
  await assertLost(adopting, size);
  const witness = await witnessBeyond(sql, log, size);
  if (witness !== undefined && !despiteWitness) {
    const told = `witness ${witness.keyId} has signed ${witness.witnessSize ?? "another tree"}`;
    throw new RecoveryError("witness-ahead", `${told}, the database was sealed to ${size}`);
  }
  const said = witness ? ` (witness ${witness.keyId} at ${witness.witnessSize ?? "odds"})` : "";
  const who = { by, reason: `${reason}${said}` };
  await assertNoStrangers(adopting);
  // All of it is compared before any of it is written: two histories must not come to lie in one place.
  await layAll(adopting, size, comparing(archive));
  await layAll(adopting, size, {
    ...archive,
    put: (files) => archive.put(files.filter(isKeptAt(size))),
  });
  await putCosignatures(adopting);
  const index = await confess(adopting, newest, who);
  await archive.put([noteFile(newest)]);
  const sealed = await seal({ ...adopting, log });
  return { size, index, sealed: sealed?.size ?? size };
}

async function newestStored({ sql, log }: Adopting): Promise<StoredCheckpoint> {
  const sealed = await transact(sql, (tx) => readSeal(tx, log));
  const [newest] = await readStored(sql, log, { after: sealed.size - 1n, limit: 1 });
  if (newest === undefined)
    throw new RecoveryError("nothing-lost", "nothing was sealed of this log");
  return newest;
}

/** The newest checkpoint is put last, so where it is nothing is missing. */
async function assertLost({ archive, log }: Adopting, size: bigint): Promise<void> {
  const latest = (await archive.sizes(log)).at(-1) ?? -1n;
  if (latest === size)
    throw new RecoveryError("nothing-lost", `the archive has checkpoint ${size}`);
  if (latest > size) {
    const told = `the archive has checkpoint ${latest}, the database was sealed to ${size}`;
    throw new RecoveryError("archive-contradiction", told);
  }
}

/**
 * Every bundle, tile and checkpoint but the newest, as the seals brought them: each stored root is held
 * against the entries on the way.
 */
async function layAll(adopting: Adopting, size: bigint, archive: Archive): Promise<void> {
  const { hash, log, signerFor, sql } = adopting;
  await transact(sql, async (tx) => {
    await keepWaiting(tx);
    const signer = await signerFor(tx, log, size);
    let sealed = EMPTY_SEAL;
    for await (const stored of storedIn(tx, log, size)) {
      const from = sealed.size;
      sealed = await lay(tx, { archive, hash, log }, sealed, stored.size);
      if (!equal(edgeRoot(sealed.edge, hash), stored.root)) {
        const told = `the entries give another root at ${stored.size} than its checkpoint has`;
        throw new RecoveryError("log-forked", told);
      }
      const opened = signer.open(stored.note);
      if (opened?.size !== stored.size || !equal(opened.root, stored.root)) {
        const told = `checkpoint ${stored.size} is not signed by a key of this log`;
        throw new RecoveryError("unknown-signer", told);
      }
      if (stored.size < size) await archive.put([noteFile(stored)]);
      // As a seal leaves it: whoever is left behind at that checkpoint must find what followed.
      await archive.create(claimPath(log, from), claimOf(stored));
      adopting.onProgress?.(stored.size, size);
    }
  });
}

/** A checkpoint that retention removed here, and that the archive would not let go, is none. */
async function assertNoStrangers({ archive, hash, log, signerFor, sql }: Adopting): Promise<void> {
  const stored = new Set(await readSizes(sql, log));
  const others = (await archive.sizes(log)).filter((size) => !stored.has(size));
  const newest = others.at(-1);
  if (newest === undefined) return;
  await transact(sql, async (tx) => {
    await keepWaiting(tx);
    const signer = await signerFor(tx, log, newest);
    let at: Seal = EMPTY_SEAL;
    for (const size of others) {
      for await (const page of extend(tx, log, at, size, hash)) at = page;
      const note = decodeUtf8((await archive.get(checkpointPath(log, size))) ?? new Uint8Array());
      const checkpoint = signer.open(note ?? "");
      if (checkpoint?.size === size && equal(checkpoint.root, edgeRoot(at.edge, hash))) continue;
      const told = `the archive has checkpoint ${size}, which is none of this database's log`;
      throw new RecoveryError("archive-contradiction", told);
    }
  });
}

async function* storedIn(
  tx: Transaction,
  log: string,
  size: bigint,
): AsyncGenerator<StoredCheckpoint> {
  for (let after = 0n; after < size; ) {
    const page = await readStored(tx, log, { after, limit: 100 });
    yield* page;
    after = page.at(-1)?.size ?? size;
  }
}

/** An archive that takes what it has already, and nothing else. */
function comparing(archive: Archive): Archive {
  return {
    ...archive,
    create: async () => "exists",
    put: async (files) => {
      const found = await Promise.all(files.map(({ path }) => archive.get(path)));
      files.forEach(({ path, bytes }, i) => {
        const there = found[i];
        if (there === undefined || equal(there, bytes)) return;
        throw new RecoveryError("archive-contradiction", `${path} has other content`);
      });
    },
  };
}

/** Of a log of this size: no partial file whose full one is there. */
function isKeptAt(size: bigint): (file: { path: string }) => boolean {
  return ({ path }) => {
    const place = parseTilePath(path.slice(path.indexOf("/") + 1));
    if (place === undefined || place.width === TILE_WIDTH) return true;
    const level = place.kind === "tile" ? place.level : 0;
    return ((place.index + 1n) * BigInt(TILE_WIDTH)) << (LEVEL_BITS * BigInt(level)) > size;
  };
}

async function putCosignatures({ archive, log, sql }: Adopting): Promise<void> {
  for await (const rows of readCosignatures(sql, log)) {
    await archive.put(
      rows.map(({ size, key_id, line }) => ({
        path: cosignaturePath(log, size, key_id),
        bytes: encodeUtf8(line),
      })),
    );
  }
}

/**
 * The entry that says whose archive this is. The guard that lets it in is made for this one entry: the
 * archive holds all that was sealed but the note that ends the adoption.
 */
async function confess(
  { clock, hash, log, random, sql }: Adopting,
  { size, root }: StoredCheckpoint,
  { by, reason }: { by: string; reason: string },
): Promise<bigint> {
  const guard: Guard = {
    assertWritable: async (tx) => {
      if ((await readSeal(tx, log)).size !== size) throw new Problem("busy");
    },
    committed: () => undefined,
  };
  const appender = openAppender({ sql, clock, hash, random, guard });
  const said = { root: encodeBase64(root), size: String(size) };
  const { index } = await appender.control(log, "archive_adopted", async (_, __, tx) => {
    const before = await readNewest(tx, log, "archive_adopted");
    const entry = before && decodeEntry(before.bytes);
    const again =
      typeof entry === "object" &&
      entry.kind === "archive_adopted" &&
      entry.body.size === said.size &&
      entry.body.root === said.root;
    return before !== undefined && again
      ? before.index
      : { ...said, by, reason, salt: salt(random) };
  });
  await appender.close();
  return index;
}

function noteFile({ log, size, note }: StoredCheckpoint): { path: string; bytes: Uint8Array } {
  return { path: checkpointPath(log, size), bytes: encodeUtf8(note) };
}
