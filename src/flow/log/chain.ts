/** The next entries of a log, linked in memory before they are inserted in one statement. */
import { type Body, type EntryOf, encodeEntry, type Kind } from "../../core/entry.ts";
import { type Hash, leafHash, type Sha256 } from "../../core/hash.ts";
import { encodeBase64 } from "../../core/text.ts";
import type { NewEntry } from "../../store/entries.ts";
import type { Head } from "../../store/heads.ts";
import type { Random } from "../clock.ts";

const SALT_BYTES = 16;

/** For a body that holds no JWS: nobody can confirm a guess of it from its public hash. */
export function salt(random: Random): string {
  return encodeBase64(random(SALT_BYTES));
}

export class Chain {
  readonly entries: NewEntry[] = [];
  readonly #log: string;
  readonly #at: string;
  readonly #hash: Sha256;
  #size: bigint;
  #leaf: Hash;

  /** @param at of every entry that is appended; never before the head's */
  constructor(log: string, head: Pick<Head, "size" | "leaf">, at: string, hash: Sha256) {
    this.#log = log;
    this.#at = at;
    this.#hash = hash;
    this.#size = head.size;
    this.#leaf = head.leaf;
  }

  /** Entries so far, those before this chain included, and the leaf hash of the last. */
  get tip(): Pick<Head, "size" | "leaf" | "at"> {
    return { size: this.#size, leaf: this.#leaf, at: this.#at };
  }

  append<K extends Kind>(kind: K, body: Body<K>): { entry: EntryOf<K>; stored: NewEntry } {
    const prev = this.#leaf;
    const index = this.#size;
    // The compiler does not follow that kind and body belong together; the signature says so.
    const entry = { at: this.#at, body, index, kind, log: this.#log, prev } as EntryOf<K>;
    const bytes = encodeEntry(entry);
    const leaf = leafHash(bytes, this.#hash);
    const stored: NewEntry = { index, kind, prev, leaf, bytes };
    this.entries.push(stored);
    this.#size = index + 1n;
    this.#leaf = leaf;
    return { entry, stored };
  }
}
