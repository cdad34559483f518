/**
 * The keys that sign a log's checkpoints and receipts, as its `log_key` entries tell. A log begins
 * under a key that no entry names and that is published beside it; others are added, and any is
 * retired as soon as another is left.
 */
import type { Body, EntryOf } from "./entry.ts";
import { formatVkey, parseVkey } from "./note.ts";
import { Problem } from "./problem.ts";
import { receiptKeyName } from "./receipt.ts";

export type Purpose = Body<"log_key">["purpose"];

/** A key that an entry names; `index` is of the newest that does. */
export interface NamedKey {
  readonly vkey: string;
  readonly state: "added" | "retired";
  readonly index: bigint;
}

interface Keys {
  readonly named: Map<string, NamedKey>;
  /** The key that the log began under was retired. */
  firstEnded: boolean;
}

export class LogKeys {
  readonly #keys: Readonly<Record<Purpose, Keys>> = {
    checkpoint: { named: new Map(), firstEnded: false },
    receipt: { named: new Map(), firstEnded: false },
  };

  apply({ body, index }: Pick<EntryOf<"log_key">, "body" | "index">): void {
    const { purpose, state, vkey } = body;
    const keys = this.#keys[purpose];
    if (state === "retired" && !keys.named.has(vkey)) keys.firstEnded = true;
    // Those that were added last come last, also if they were retired in between.
    if (state === "added") keys.named.delete(vkey);
    keys.named.set(vkey, { vkey, state, index });
  }

  /** In the order in which they were added. */
  named(purpose: Purpose): readonly NamedKey[] {
    return [...this.#keys[purpose].named.values()];
  }

  /** Whether the key that the log began under is in force still. */
  firstInForce(purpose: Purpose): boolean {
    return !this.#keys[purpose].firstEnded;
  }

  /**
   * May this entry be the next?
   *
   * @throws Problem `key-in-use`, `key-has-ended`, `last-log-key`
   */
  assertNext({ purpose, state, vkey }: Body<"log_key">): void {
    const known = this.#keys[purpose].named.get(vkey)?.state;
    if (state === "added") {
      if (known === "added") throw new Problem("key-in-use");
      return;
    }
    const first = this.firstInForce(purpose);
    // One that no entry names is the first, and of firsts there is one.
    if (known === "retired" || (known === undefined && !first)) throw new Problem("key-has-ended");
    const others = this.named(purpose).some((key) => key.state === "added" && key.vkey !== vkey);
    if (!others && !(known === "added" && first)) throw new Problem("last-log-key");
  }
}

/** Is this an admissible Ed25519 key, under the name that keys of its purpose have on this log? */
export function isLogKey(log: string, { purpose, vkey: text }: Body<"log_key">): boolean {
  const vkey = parseVkey(text);
  if (vkey === undefined || formatVkey(vkey.name, vkey.publicKey) !== text) return false;
  const origin = `/${log}`;
  return vkey.name.endsWith(purpose === "checkpoint" ? origin : receiptKeyName(origin));
}
