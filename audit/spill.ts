/** Piles of records that go to files of a temporary folder as soon as they are more than a few megabytes. */
import {
  appendFileSync,
  closeSync,
  mkdtempSync,
  openSync,
  readSync,
  rmSync,
  statSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenPiles, Piles } from "./tally/piles.ts";

/** What one kind of record may take before its piles are written out: 8 KB of each of a thousand, at once. */
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
    open: (width) => {
      const name = opened++;
      const pathOf = (pile: number): string => join(folderOf(), `${name}-${pile}`);
      return new SpilledPiles(pathOf, width, bufferBytesMax);
    },
    close: () => {
      if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}

class SpilledPiles implements Piles {
  readonly #pathOf: (pile: number) => string;
  readonly #width: number;
  readonly #max: number;
  #buffers = new Map<number, { bytes: Uint8Array; length: number }>();
  #buffered = 0;
  readonly #numbers = new Set<number>();
  readonly #spilled = new Set<number>();

  constructor(pathOf: (pile: number) => string, width: number, bufferBytesMax: number) {
    this.#pathOf = pathOf;
    this.#width = width;
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

  *read(pile: number, partBytesMax: number): Generator<Uint8Array> {
    const records = Math.max(1, Math.floor(partBytesMax / this.#width));
    const stride = records * this.#width;
    if (this.#spilled.has(pile)) {
      const path = this.#pathOf(pile);
      const { size } = statSync(path);
      for (let at = 0; at < size; at += stride) {
        yield readPart(path, at, Math.min(stride, size - at));
      }
    }
    const buffer = this.#buffers.get(pile) ?? { bytes: new Uint8Array(), length: 0 };
    for (let at = 0; at < buffer.length; at += stride) {
      yield buffer.bytes.subarray(at, Math.min(at + stride, buffer.length));
    }
  }

  #start(pile: number): { bytes: Uint8Array; length: number } {
    const buffer = { bytes: new Uint8Array(BUFFER_BYTES_FIRST), length: 0 };
    this.#buffers.set(pile, buffer);
    this.#numbers.add(pile);
    this.#buffered += BUFFER_BYTES_FIRST;
    return buffer;
  }

  #flush(): void {
    for (const [pile, { bytes, length }] of this.#buffers) {
      appendFileSync(this.#pathOf(pile), bytes.subarray(0, length));
      this.#spilled.add(pile);
    }
    this.#buffers = new Map();
    this.#buffered = 0;
  }
}

/** Opened for each part: as many piles may be read at once as there are. */
function readPart(path: string, at: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  const file = openSync(path, "r");
  try {
    for (let read = 0; read < length; ) {
      const count = readSync(file, bytes, read, length - read, at + read);
      if (count === 0) throw new Error("spill: a file that became shorter");
      read += count;
    }
  } finally {
    closeSync(file);
  }
  return bytes;
}
