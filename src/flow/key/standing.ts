/** How the keys of a log stand: what its entries say of them, and which of them this service holds. */
import type { LogKeys, Purpose } from "../../core/log-key.ts";
import { formatVkey } from "../../core/note.ts";
import { Problem } from "../../core/problem.ts";
import { receiptKeyName } from "../../core/receipt.ts";
import type { SigningKey } from "./signing-key.ts";

export interface HeldKeys {
  /** The key of logs whose entries name none; behind it, where there is one, the next. */
  readonly checkpoint: readonly SigningKey[];
  readonly receipt: readonly SigningKey[];
  /** Whether signatures are to be had, as far as is known: asked before anything is accepted. */
  available(): boolean;
}

/** `held` is a key that signs when an entry adds it. */
export type KeyState = "in_force" | "retired" | "held";

export interface StandingKey {
  readonly vkey: string;
  readonly state: KeyState;
  /** Of the newest entry that names it. */
  readonly index?: bigint;
  /** Where this service holds it. */
  readonly key?: SigningKey;
}

/** Oldest first; `origin` is the name of the checkpoint keys. */
export interface StandingKeys extends Readonly<Record<Purpose, readonly StandingKey[]>> {
  readonly origin: string;
}

export function standingKeys(entries: LogKeys, origin: string, held: HeldKeys): StandingKeys {
  return {
    origin,
    checkpoint: standing(entries, "checkpoint", origin, held.checkpoint),
    receipt: standing(entries, "receipt", receiptKeyName(origin), held.receipt),
  };
}

/**
 * Those that sign: all that are in force, oldest first. One that was lost does not stop the others, or
 * its retirement could never be written.
 *
 * @throws Problem `signer-unavailable` where none of them is held
 */
export function inForce(keys: readonly StandingKey[]): [SigningKey, ...SigningKey[]] {
  const signing = keys.filter(({ state }) => state === "in_force");
  const [first, ...rest] = signing.flatMap(({ key }) => (key === undefined ? [] : [key]));
  if (first === undefined) throw signerUnavailable(new Error("keys: none in force is held"));
  return [first, ...rest];
}

export function signerUnavailable(cause: Error): Problem {
  const problem = new Problem("signer-unavailable");
  problem.cause = cause;
  return problem;
}

function standing(
  entries: LogKeys,
  purpose: Purpose,
  name: string,
  held: readonly SigningKey[],
): StandingKey[] {
  const unnamed = new Map(held.map((key) => [formatVkey(name, key.publicKey), key]));
  const [first] = unnamed.keys();
  const named = entries.named(purpose).map(({ vkey, state, index }): StandingKey => {
    const key = unnamed.get(vkey);
    unnamed.delete(vkey);
    return { vkey, index, state: state === "added" ? "in_force" : state, ...(key && { key }) };
  });
  const rest = Array.from(unnamed, ([vkey, key]): StandingKey => {
    const isFirst = vkey === first && entries.firstInForce(purpose);
    return { vkey, state: isFirst ? "in_force" : "held", key };
  });
  const [oldest] = rest;
  return oldest?.state === "in_force" ? [oldest, ...named, ...rest.slice(1)] : [...named, ...rest];
}
