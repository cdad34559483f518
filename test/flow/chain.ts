/** Long logs of small entries, written past the one door: for tests of what comes after append. */
import { hash } from "node:crypto";
import { encodeEntry, GENESIS_PREV } from "../../src/core/entry.ts";
import { type Hash, leafHash, type Sha256 } from "../../src/core/hash.ts";
import { instantText } from "../../src/core/unit.ts";
import { openGuard } from "../../src/flow/log/guard.ts";
import type { Sealer } from "../../src/flow/log/seal.ts";
import type { Archive } from "../../src/store/archive.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import type { Sql } from "../../src/store/connect.ts";
import { insertEntries, type NewEntry } from "../../src/store/entries.ts";
import { testKey } from "../signing.ts";
import { signersUnder } from "./signer.ts";

export const CHAIN_START = Date.UTC(2026, 10, 1);
const PAGE = 4_096;

export const nodeHash: Sha256 = (bytes) => new Uint8Array(hash("sha256", bytes, "buffer"));

/** The log key of the service that these tests stand for. */
export const { signerFor, vkeyOf } = signersUnder("chain.test", testKey(7));

/** The same number gives the same log, to the byte; with `fork`, another one from that index on. */
export class Chain {
  readonly log: string;
  readonly entries: NewEntry[] = [];
  readonly #fork: number;

  constructor(number: number, fork = Number.POSITIVE_INFINITY) {
    this.log = number.toString(16).padStart(32, "0");
    this.#fork = fork;
  }

  get size(): bigint {
    return BigInt(this.entries.length);
  }

  get leaves(): Hash[] {
    return this.entries.map(({ leaf }) => leaf);
  }

  /** Puts entries up to `size`, written `later` ms after the start, into the table and under the head. */
  async growTo(sql: Sql, size: number, later = 0): Promise<void> {
    const from = this.entries.length;
    const at = instantText(CHAIN_START + later);
    while (this.entries.length < size) this.#append(at);
    await sql.begin(async (tx) => {
      for (let start = from; start < size; start += PAGE) {
        await insertEntries(tx, this.log, at, this.entries.slice(start, start + PAGE));
      }
      const leaf = this.entries.at(-1)?.leaf ?? GENESIS_PREV;
      await tx`
        insert into heads (log, size, leaf, at, control_index)
        values (${this.log}, ${this.size}, ${leaf}, ${at}, -1)
        on conflict (log) do update set size = excluded.size, leaf = excluded.leaf`;
    });
  }

  #append(at: string): void {
    const index = this.size;
    const prev = this.entries.at(-1)?.leaf ?? GENESIS_PREV;
    const bytes = encodeEntry({
      at,
      body: { jws: `${index < this.#fork ? "" : "other "}${index}` },
      index,
      kind: "attestation",
      log: this.log,
      prev,
    });
    this.entries.push({ index, kind: "attestation", prev, bytes, leaf: leafHash(bytes, nodeHash) });
  }
}

/** The sizes that the database has checkpoints for. */
export async function checkpointed(sql: Sql, log: string): Promise<bigint[]> {
  const rows = await sql<{ size: bigint }[]>`
    select size from checkpoints where log = ${log} order by size`;
  return rows.map(({ size }) => size);
}

/** For places where nothing may fail. */
export function failOn(error: unknown): never {
  throw error;
}

/** All that one process seals with; `now` is its clock. */
export function sealerOf(
  sql: Sql,
  archive: Archive | string,
  signers: Sealer["signerFor"] = signerFor,
): Sealer & { now: number } {
  const folder = typeof archive === "string" ? folderArchive(archive) : archive;
  const sealer = { now: CHAIN_START, sql, archive: folder, signerFor: signers, hash: nodeHash };
  const clock = { now: () => sealer.now };
  return Object.assign(sealer, { clock, guard: openGuard({ ...sealer, clock }) });
}
