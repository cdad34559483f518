/** Bundles and their tiles in the order of the log, some of them asked for before they are needed. */
import { TILE_WIDTH } from "../../src/core/tile.ts";
import type { Source } from "../source.ts";
import { type BlockFiles, readBlock } from "./files.ts";

const WIDTH = BigInt(TILE_WIDTH);

export class ReadAhead {
  readonly #source: Source;
  readonly #size: bigint;
  readonly #asked = new Map<bigint, Promise<BlockFiles>>();
  /** How many bundles entries up to the size fill or begin. */
  readonly end: bigint;

  constructor(source: Source, size: bigint) {
    this.#source = source;
    this.#size = size;
    this.end = (size + WIDTH - 1n) / WIDTH;
  }

  /** Of a bundle below the end; each is read once, and none again that was passed by. */
  read(index: bigint): Promise<BlockFiles> {
    const last = index + BigInt(this.#source.ahead ?? 0);
    for (let next = index; next <= last && next < this.end; next += 1n) {
      if (!this.#asked.has(next)) this.#asked.set(next, this.#ask(next));
    }
    const files = this.#asked.get(index) ?? this.#ask(index);
    for (const asked of this.#asked.keys()) if (asked <= index) this.#asked.delete(asked);
    return files;
  }

  #ask(index: bigint): Promise<BlockFiles> {
    const left = this.#size - index * WIDTH;
    const files = readBlock(this.#source, index, left < WIDTH ? Number(left) : TILE_WIDTH);
    files.catch(() => {}); // whoever comes to this bundle learns of it
    return files;
  }
}
