/** How the keys of a log stand: what its entries say of them, and which of them this service holds. */
import type { LogKeys, Purpose } from "../../core/log-key.ts";
import { formatVkey } from "../../core/note.ts";
import { Problem } from "../../core/problem.ts";
import { receiptKeyName } from "../../core/receipt.ts";
import type { FirstKeys } from "../../store/first-keys.ts";
import type { SigningKey } from "./signing-key.ts";

export interface HeldKeys {
  /** The key that new logs begin under; behind it, where there is one, the next. */
  readonly checkpoint: readonly SigningKey[];
  readonly receipt: readonly SigningKey[];
  /** Those of before, for logs that are signed with them still. */
  readonly former?: Readonly<Partial<Record<Purpose, SigningKey | undefined>>>;
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

/** @param first of a log that came back from its archive it is not known: the oldest that is held */
export function standingKeys(
  entries: LogKeys,
  origin: string,
  held: HeldKeys,
  first: FirstKeys | undefined,
): StandingKeys {
  const of = (purpose: Purpose, name: string): StandingKey[] =>
    standing(entries, purpose, vkeysOf(name, heldFor(held, purpose)), first?.[purpose]);
  return {
    origin,
    checkpoint: of("checkpoint", origin),
    receipt: of("receipt", receiptKeyName(origin)),
  };
}

/** The keys that a log begins under which is made here. */
export function firstKeys(origin: string, { checkpoint, receipt }: HeldKeys): FirstKeys {
  const firstOf = (name: string, keys: readonly SigningKey[]): string => {
    const [vkey] = vkeysOf(name, keys).keys();
    if (vkey === undefined) throw new Error("keys: a service without a key");
    return vkey;
  };
  return {
    checkpoint: firstOf(origin, checkpoint),
    receipt: firstOf(receiptKeyName(origin), receipt),
  };
}

/** Oldest first. */
export function heldFor({ former, ...held }: HeldKeys, purpose: Purpose): readonly SigningKey[] {
  const before = former?.[purpose];
  return before === undefined ? held[purpose] : [before, ...held[purpose]];
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

function vkeysOf(name: string, held: readonly SigningKey[]): Map<string, SigningKey> {
  return new Map(held.map((key) => [formatVkey(name, key.publicKey), key]));
}

function standing(
  entries: LogKeys,
  purpose: Purpose,
  held: ReadonlyMap<string, SigningKey>,
  recorded: string | undefined,
): StandingKey[] {
  const vkeys = [...held.keys()];
  const first = recorded ?? vkeys[0];
  const show = (vkey: string, state: KeyState, index?: bigint): StandingKey => {
    const key = held.get(vkey);
    return { vkey, state, ...(index !== undefined && { index }), ...(key && { key }) };
  };
  const named = entries.named(purpose).map(({ vkey, state, index }) => {
    return show(vkey, state === "added" ? "in_force" : state, index);
  });
  const known = new Set([first, ...named.map(({ vkey }) => vkey)]);
  // What is older than a log's first key was never to be one of its keys.
  const later = first === undefined ? [] : vkeys.slice(vkeys.indexOf(first) + 1);
  const rest = later.filter((vkey) => !known.has(vkey)).map((vkey) => show(vkey, "held"));
  const isNamed = named.some(({ vkey }) => vkey === first);
  if (first === undefined || isNamed) return [...named, ...rest];
  if (entries.firstInForce(purpose)) return [show(first, "in_force"), ...named, ...rest];
  return [...named, show(first, "held"), ...rest];
}
