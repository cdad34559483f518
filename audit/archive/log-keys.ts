/**
 * The keys that a log's checkpoints may rest on: those that the auditor was given, and those that the
 * log itself added in an entry under a checkpoint that is trusted already.
 */
import type { EntryOf } from "../../src/core/entry.ts";
import { parseVkey, type Vkey } from "../../src/core/note.ts";
import { CannotLook } from "../finding.ts";

interface Change {
  index: bigint;
  state: "added" | "retired";
}

/** What is followed of one log: each key may take a pass, and each change is looked through for checkpoints. */
export const LEARNED_MAX = 64;
const CHANGES_MAX = 10_000;

/** Why a checkpoint of some size may or may not rest on a key. */
export type Stands = "yes" | "retired" | "not-yet";

export class LogKeys {
  readonly #given: readonly Vkey[];
  readonly #vkeys = new Map<string, Vkey>();
  readonly #changes = new Map<string, Change[]>();
  /** Entries below this size have taught what they can. */
  #size = 0n;
  #count = 0;

  constructor(given: readonly Vkey[]) {
    this.#given = given;
    for (const vkey of given) this.#vkeys.set(nameOf(vkey), vkey);
  }

  /** Every key that was ever trusted; which checkpoints may rest on it, `stands` says. */
  get vkeys(): Vkey[] {
    return [...this.#vkeys.values()];
  }

  /** How often entries have changed what is known. */
  get changes(): number {
    return this.#count;
  }

  /** Those of them that nobody gave: what the log has taught. */
  get learned(): Vkey[] {
    const given = new Set(this.#given.map(nameOf));
    return this.vkeys.filter((vkey) => !given.has(nameOf(vkey)));
  }

  /**
   * Takes entries, in their order, that a checkpoint of `size` covers which rests on a key in force, once
   * its root was compared and found equal. Entries of an earlier pass may come again.
   *
   * @returns whether anything was new, which `changes` counts
   * @throws CannotLook beyond the bounds
   */
  learn(entries: readonly EntryOf<"log_key">[], size: bigint): boolean {
    const fresh = entries.filter(({ index }) => index >= this.#size);
    if (size > this.#size) this.#size = size;
    return fresh.filter((entry) => this.#take(entry)).length > 0;
  }

  /** One that names no key of the log's own teaches nothing. */
  #take({ body, index }: EntryOf<"log_key">): boolean {
    const vkey = parseVkey(body.vkey);
    const ours = this.#given.some(({ name }) => name === vkey?.name);
    if (vkey?.type !== "ed25519" || body.purpose !== "checkpoint" || !ours) return false;
    const name = nameOf(vkey);
    const changes = this.#changes.get(name) ?? [];
    changes.push({ index, state: body.state });
    this.#count += 1;
    this.#changes.set(name, changes);
    if (!this.#vkeys.has(name)) this.#vkeys.set(name, vkey);
    if (this.#count > CHANGES_MAX || this.#vkeys.size > this.#given.length + LEARNED_MAX) {
      throw new CannotLook(
        "the log names more new keys, or changes them more often, than is followed",
      );
    }
    return true;
  }

  /**
   * By the entries that a checkpoint of this size covers. A given key stands until it is retired, and so
   * does one that was retired without having been added: the log's first.
   */
  stands(vkey: Vkey, size: bigint): Stands {
    const name = nameOf(vkey);
    const changes = this.#changes.get(name) ?? [];
    const last = changes.findLast(({ index }) => index < size)?.state;
    if (last !== undefined) return last === "added" ? "yes" : "retired";
    const given = this.#given.some((other) => nameOf(other) === name);
    return given || changes[0]?.state === "retired" ? "yes" : "not-yet";
  }
}

/** The id alone is four bytes: two keys of one id are made in an hour. */
function nameOf({ id, name, publicKey }: Vkey): string {
  return `${name}+${id}+${publicKey.join(".")}`;
}
