/** Piles of records that go to a file of a temporary folder as soon as they are more than a megabyte. */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenPiles, Piles } from "./tally/piles.ts";

/** What one kind of record may take before it is written out. */
const BUFFER_BYTES_MAX = 1024 * 1024;
const BUFFER_BYTES_FIRST = 512;

/** `close` removes the folder; it is made only if something has to go there. */
export interface Spill {
  open: OpenPiles;
  close(): void;
}

export function openSpill(parent = tmpdir(), bufferBytesMax = BUFFER_BYTES_MAX): Spill {
  let folder: string | undefined;
  const files: number[] = [];
  const openFile = (): number => {
    folder ??= mkdtempSync(join(parent, "minutebook-audit-"));
    const file = openSync(join(folder, String(files.length)), "wx+");
    files.push(file);
    return file;
  };
  return {
    open: (width) => new SpilledPiles(openFile, width, bufferBytesMax),
    close: () => {
      for (const file of files) closeSync(file);
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Records that were set aside together, pile by pile. */
interface Sorted {
  /** Ascending, and where the records of each end. */
  piles: Float64Array;
  ends: Uint32Array;
  /** The records, or where they begin in the file. */
  bytes: Uint8Array | number;
}

class SpilledPiles implements Piles {
  readonly #openFile: () => number;
  readonly #width: number;
  readonly #max: number;
  /** Records as they came; of each run of one pile's, which pile, and where it ends. */
  #records = new Uint8Array(BUFFER_BYTES_FIRST);
  #pileOf: number[] = [];
  #ends: number[] = [];
  #last: number | undefined;
  #length = 0;
  readonly #sorted: Sorted[] = [];
  #file: number | undefined;
  #written = 0;

  constructor(openFile: () => number, width: number, bufferBytesMax: number) {
    this.#openFile = openFile;
    this.#width = width;
    this.#max = bufferBytesMax;
  }

  add(pile: number, record: Uint8Array): void {
    const end = this.#length + record.length;
    if (end > this.#records.length) {
      const records = new Uint8Array(Math.max(end, Math.min(2 * end, this.#max)));
      records.set(this.#records);
      this.#records = records;
    }
    this.#records.set(record, this.#length);
    this.#length = end;
    if (pile !== this.#last) {
      this.#last = pile;
      this.#pileOf.push(pile);
      this.#ends.push(end);
    } else this.#ends[this.#ends.length - 1] = end;
    if (end > this.#max) this.#write();
  }

  numbers(): number[] {
    const numbers = new Set(this.#pileOf);
    for (const { piles } of this.#sorted) for (const pile of piles) numbers.add(pile);
    return Array.from(numbers).sort((a, b) => a - b);
  }

  *read(pile: number, partBytesMax: number): Generator<Uint8Array> {
    if (this.#length > 0) {
      this.#sorted.push(this.#sort());
      this.#records = new Uint8Array(BUFFER_BYTES_FIRST);
    }
    const pieces = this.#sorted.map((sorted) => pieceOf(sorted, pile));
    const stride = Math.max(1, Math.floor(partBytesMax / this.#width)) * this.#width;
    let left = pieces.reduce((total, { length }) => total + length, 0);
    while (left > 0) {
      const part = new Uint8Array(Math.min(stride, left));
      this.#fill(part, pieces);
      left -= part.length;
      yield part;
    }
  }

  /** Takes from the front of the pieces. */
  #fill(part: Uint8Array, pieces: Piece[]): void {
    let filled = 0;
    for (const piece of pieces) {
      const length = Math.min(piece.length, part.length - filled);
      const into = part.subarray(filled, filled + length);
      if (typeof piece.bytes !== "number") {
        into.set(piece.bytes.subarray(piece.at, piece.at + length));
      } else if (this.#file !== undefined) {
        readWhole(this.#file, into, piece.bytes + piece.at);
      }
      piece.at += length;
      piece.length -= length;
      filled += length;
    }
  }

  #write(): void {
    const sorted = this.#sort();
    this.#file ??= this.#openFile();
    this.#sorted.push({ ...sorted, bytes: this.#written });
    this.#written += writeWhole(this.#file, sorted.bytes, this.#written);
  }

  /** By pile, and in each in the order they came; what comes next begins anew. */
  #sort(): Sorted & { bytes: Uint8Array } {
    const starts = [0, ...this.#ends];
    const lengths = new Map<number, number>();
    this.#pileOf.forEach((pile, i) => {
      const length = (this.#ends[i] ?? 0) - (starts[i] ?? 0);
      lengths.set(pile, (lengths.get(pile) ?? 0) + length);
    });
    const piles = Float64Array.from(lengths.keys()).sort();
    const next = new Map<number, number>();
    let end = 0;
    const ends = Uint32Array.from(piles, (pile) => {
      next.set(pile, end);
      end += lengths.get(pile) ?? 0;
      return end;
    });
    const bytes = new Uint8Array(end);
    this.#pileOf.forEach((pile, i) => {
      const at = next.get(pile) ?? 0;
      const run = this.#records.subarray(starts[i], this.#ends[i]);
      bytes.set(run, at);
      next.set(pile, at + run.length);
    });
    this.#pileOf = [];
    this.#ends = [];
    this.#last = undefined;
    this.#length = 0;
    return { piles, ends, bytes };
  }
}

/** Records of one pile among those that were sorted together. */
interface Piece {
  bytes: Sorted["bytes"];
  at: number;
  length: number;
}

function pieceOf({ bytes, ends, piles }: Sorted, pile: number): Piece {
  let [low, high] = [0, piles.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((piles[middle] ?? 0) < pile) low = middle + 1;
    else high = middle;
  }
  if (piles[low] !== pile) return { bytes, at: 0, length: 0 };
  const at = ends[low - 1] ?? 0;
  return { bytes, at, length: (ends[low] ?? 0) - at };
}

function writeWhole(file: number, bytes: Uint8Array, at: number): number {
  let written = 0;
  while (written < bytes.length) {
    written += writeSync(file, bytes, written, bytes.length - written, at + written);
  }
  return written;
}

function readWhole(file: number, bytes: Uint8Array, at: number): void {
  for (let read = 0; read < bytes.length; ) {
    const count = readSync(file, bytes, read, bytes.length - read, at + read);
    if (count === 0) throw new Error("spill: a file that became shorter");
    read += count;
  }
}
