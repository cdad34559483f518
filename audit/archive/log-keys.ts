/**
 * The keys that a log's checkpoints may rest on: those that the auditor was given, and those that the
 * log itself added in an entry under a checkpoint that is trusted already.
 */
import type { EntryOf } from "../../src/core/entry.ts";
import { parseVkey, type Vkey } from "../../src/core/note.ts";

interface Change {
  index: bigint;
  state: "added" | "retired";
}

/** Why a checkpoint of some size may or may not rest on a key. */
export type Stands = "yes" | "retired" | "not-yet";

export class LogKeys {
  readonly #given: readonly Vkey[];
  readonly #vkeys = new Map<string, Vkey>();
  readonly #changes = new Map<string, Change[]>();

  constructor(given: readonly Vkey[]) {
    this.#given = given;
    for (const vkey of given) this.#vkeys.set(nameOf(vkey), vkey);
  }

  /** Every key that was ever trusted; which checkpoints may rest on it, `stands` says. */
  get vkeys(): Vkey[] {
    return [...this.#vkeys.values()];
  }

  /** Those of them that nobody gave: what the log has taught. */
  get learned(): Vkey[] {
    const given = new Set(this.#given.map(nameOf));
    return this.vkeys.filter((vkey) => !given.has(nameOf(vkey)));
  }

  /** The same entry may come again. One that names no key of the log's own teaches nothing. */
  note({ body, index }: EntryOf<"log_key">): void {
    const vkey = parseVkey(body.vkey);
    const ours = this.#given.some(({ name }) => name === vkey?.name);
    if (vkey?.type !== "ed25519" || body.purpose !== "checkpoint" || !ours) return;
    const name = nameOf(vkey);
    const changes = this.#changes.get(name) ?? [];
    if (changes.some((change) => change.index === index)) return;
    this.#changes.set(name, [...changes, { index, state: body.state }]);
    if (!this.#vkeys.has(name)) this.#vkeys.set(name, vkey);
  }

  /**
   * By the entries that a checkpoint of this size covers. A given key stands until it is retired, and so
   * does one that was retired without having been added: the log's first.
   */
  stands(vkey: Vkey, size: bigint): Stands {
    const name = nameOf(vkey);
    const changes = this.#changes.get(name) ?? [];
    const last = changes.filter(({ index }) => index < size).at(-1)?.state;
    if (last !== undefined) return last === "added" ? "yes" : "retired";
    const given = this.#given.some((other) => nameOf(other) === name);
    return given || changes[0]?.state === "retired" ? "yes" : "not-yet";
  }
}

/** The id alone is four bytes: two keys of one id are made in an hour. */
function nameOf({ id, name, publicKey }: Vkey): string {
  return `${name}+${id}+${publicKey.join(".")}`;
}
