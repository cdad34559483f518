/** Few texts that come again and again, as numbers. */
import { encodeUtf8 } from "../../src/core/text.ts";
import { compareBytes } from "./piles.ts";

/** By number, in the order in which they came. */
export class Texts {
  readonly #numbers = new Map<string, number>();
  readonly #texts: string[] = [];

  get all(): readonly string[] {
    return this.#texts;
  }

  number(text: string): number {
    const known = this.#numbers.get(text);
    if (known !== undefined) return known;
    this.#numbers.set(text, this.#texts.length);
    return this.#texts.push(text) - 1;
  }

  text(number: number): string {
    return this.#texts[number] ?? "";
  }
}

/** By place, in the order of code points, which is that of UTF-8's bytes. */
export class Ranks {
  readonly #places: ReadonlyMap<string, bigint>;
  readonly #texts: readonly string[];

  constructor(texts: Iterable<string>) {
    const encoded = Array.from(new Set(texts), (text) => ({ text, bytes: encodeUtf8(text) }));
    this.#texts = encoded.sort((a, b) => compareBytes(a.bytes, b.bytes)).map(({ text }) => text);
    this.#places = new Map(this.#texts.map((text, place) => [text, BigInt(place)]));
  }

  /** @throws Error for a text that is none of them */
  place(text: string): bigint {
    const place = this.#places.get(text);
    if (place === undefined) throw new Error("ranks: an unknown text");
    return place;
  }

  text(place: bigint): string {
    return this.#texts[Number(place)] ?? "";
  }
}
