/** Seals and checkpoints of a log against the Merkle tree of the entries that were walked. */
import { parseCheckpoint } from "../../core/checkpoint.ts";
import type { Verify } from "../../core/ed25519.ts";
import { GENESIS_PREV } from "../../core/entry.ts";
import type { Hash, Sha256 } from "../../core/hash.ts";
import { openNote, type Vkey } from "../../core/note.ts";
import { type Edge, EMPTY_EDGE, edgeRoot, encodeEdge, grow } from "../../core/tile.ts";
import type { CheckpointRow, SealRow, Stream } from "../../store/snapshots.ts";
import { differences, finding, type Place } from "./compare.ts";
import type { Finding, Unsigned } from "./event.ts";

/** With whose keys the notes must be signed, each by one that is named as its origin. */
export interface Notary {
  vkeys(log: string): readonly Vkey[];
  verify: Verify;
}

export class Tree {
  readonly #log: string;
  readonly #hash: Sha256;
  /** Read once: a key costs as much as a signature. */
  readonly #notary: { vkeys: readonly Vkey[]; verify: Verify } | undefined;
  readonly #checkpoints: Stream<CheckpointRow>;
  #edge: Edge = EMPTY_EDGE;
  #sealed: SealRow = { size: 0n, leaf: GENESIS_PREV, edge: encodeEdge(EMPTY_EDGE) };

  constructor(
    log: string,
    checkpoints: Stream<CheckpointRow>,
    { hash, notary }: { hash: Sha256; notary?: Notary | undefined },
  ) {
    this.#log = log;
    this.#checkpoints = checkpoints;
    this.#hash = hash;
    this.#notary = notary && { vkeys: notary.vkeys(log), verify: notary.verify };
  }

  /** Size of the last checkpoint that the walk has come to. */
  get sealedSize(): bigint {
    return this.#sealed.size;
  }

  /** Takes the next leaves in, and compares the checkpoints that lie among them. */
  async *grow(leaves: readonly Hash[]): AsyncGenerator<Finding | Unsigned> {
    const start = this.#edge.size;
    const end = start + BigInt(leaves.length);
    for (const checkpoint of await this.#checkpoints.below(end + 1n)) {
      const { size } = checkpoint;
      this.#extend(leaves.slice(Number(this.#edge.size - start), Number(size - start)));
      yield* this.#compare(checkpoint);
      const leaf = leaves[Number(size - start) - 1] ?? this.#sealed.leaf;
      this.#sealed = { size, leaf, edge: encodeEdge(this.#edge) };
    }
    this.#extend(leaves.slice(Number(this.#edge.size - start)));
  }

  /** Checkpoints behind the last entry; then the seal, which is that of the last checkpoint. */
  async *end(seal: SealRow | undefined): AsyncGenerator<Finding> {
    const place = { log: this.#log, index: this.#edge.size };
    const stream = this.#checkpoints;
    for (let page = await stream.page(); page.length > 0; page = await stream.page()) {
      for (const { size } of page) {
        yield finding({ ...place, table: "checkpoints" }, "size", this.#edge.size, size);
      }
    }
    await stream.close();
    const seals = { log: this.#log, index: this.#sealed.size, table: "seals" };
    if (seal !== undefined) yield* differences(seals, this.#sealed, seal);
    else if (this.#sealed.size > 0n) yield finding(seals, "size", this.#sealed.size, null);
  }

  #extend(leaves: readonly Hash[]): void {
    this.#edge = grow(this.#edge, leaves, this.#hash).edge;
  }

  *#compare({ size, root, note }: CheckpointRow): Generator<Finding | Unsigned> {
    const place = { log: this.#log, index: size - 1n, table: "checkpoints" };
    const truth = edgeRoot(this.#edge, this.#hash);
    const said = parseCheckpoint(note.slice(0, note.lastIndexOf("\n\n") + 1));
    if (said === undefined) {
      yield finding(place, "note", "a checkpoint", note);
      return;
    }
    const log = said.origin.slice(said.origin.lastIndexOf("/") + 1);
    yield* differences(
      place,
      { log, size: said.size, root: truth },
      { log: this.#log, size, root },
    );
    yield* differences(place, { note: truth }, { note: said.root });
    yield* this.#signature(place, note, said.origin);
  }

  *#signature(place: Place, note: string, origin: string): Generator<Finding | Unsigned> {
    if (this.#notary === undefined) {
      yield { kind: "unsigned", log: this.#log, size: String(place.index + 1n) };
      return;
    }
    const opened = openNote(note, this.#notary.vkeys, this.#notary.verify);
    if ("problem" in opened) {
      yield finding(place, "note", "signed by this log's key", opened.problem);
    } else if (!opened.verified.includes(origin)) {
      yield finding(place, "note", opened.verified.join(" "), origin);
    }
  }
}
