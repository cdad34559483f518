/** Piles of records that go to files of a temporary folder as soon as they are more than a few megabytes. */
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenPiles, Piles } from "./tally/piles.ts";

/** What one kind of record may take before its piles are written out. */
const BUFFER_BYTES_MAX = 8 * 1024 * 1024;
const BUFFER_BYTES_FIRST = 512;

/** `close` removes the folder; it is made only if something has to go there. */
export interface Spill {
  open: OpenPiles;
  close(): void;
}

export function openSpill(parent = tmpdir(), bufferBytesMax = BUFFER_BYTES_MAX): Spill {
  let folder: string | undefined;
  let opened = 0;
  const folderOf = (): string => {
    folder ??= mkdtempSync(join(parent, "minutebook-audit-"));
    return folder;
  };
  return {
    open: () => {
      const name = opened++;
      return new SpilledPiles((pile) => join(folderOf(), `${name}-${pile}`), bufferBytesMax);
    },
    close: () => {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

class SpilledPiles implements Piles {
  readonly #pathOf: (pile: number) => string;
  readonly #max: number;
  #buffers = new Map<number, { bytes: Uint8Array; length: number }>();
  #buffered = 0;
  readonly #numbers = new Set<number>();
  #spilled = false;

  constructor(pathOf: (pile: number) => string, bufferBytesMax: number) {
    this.#pathOf = pathOf;
    this.#max = bufferBytesMax;
  }

  add(pile: number, record: Uint8Array): void {
    const buffer = this.#buffers.get(pile) ?? this.#start(pile);
    const length = buffer.length + record.length;
    if (length > buffer.bytes.length) {
      const bytes = new Uint8Array(2 * length);
      this.#buffered += bytes.length - buffer.bytes.length;
      bytes.set(buffer.bytes.subarray(0, buffer.length));
      buffer.bytes = bytes;
    }
    buffer.bytes.set(record, buffer.length);
    buffer.length = length;
    if (this.#buffered > this.#max) this.#flush();
  }

  numbers(): number[] {
    return Array.from(this.#numbers).sort((a, b) => a - b);
  }

  read(pile: number): Uint8Array {
    const buffer = this.#buffers.get(pile);
    const rest = buffer?.bytes.subarray(0, buffer.length) ?? new Uint8Array();
    if (!this.#spilled || !existsSync(this.#pathOf(pile))) return rest;
    return Uint8Array.from(Buffer.concat([readFileSync(this.#pathOf(pile)), rest]));
  }

  #start(pile: number): { bytes: Uint8Array; length: number } {
    const buffer = { bytes: new Uint8Array(BUFFER_BYTES_FIRST), length: 0 };
    this.#buffers.set(pile, buffer);
    this.#numbers.add(pile);
    this.#buffered += BUFFER_BYTES_FIRST;
    return buffer;
  }

  #flush(): void {
    this.#spilled = true;
    for (const [pile, { bytes, length }] of this.#buffers) {
      appendFileSync(this.#pathOf(pile), bytes.subarray(0, length));
    }
    this.#buffers = new Map();
    this.#buffered = 0;
  }
}
