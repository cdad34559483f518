/**
 * What the entries so far have said, kept as plainly as they said it: lists in the order of the log,
 * scanned from their end. Written without a look at the service's own prefix, so that a fault of the
 * one is no fault of the other.
 */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Body, EnrolledRunner, EntryOf } from "../../src/core/entry.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import type { Tracking } from "../../src/core/unit.ts";
import type { Decided } from "../control/decided.ts";
import type { Evidence } from "../evidence/state.ts";
import type { Feed } from "../feed/state.ts";
import type { Money } from "../money/state.ts";
import type { Runs } from "../tally/runs.ts";

export interface Key {
  kid: string;
  publicKey: Uint8Array;
  /** Indices of the enrolment it belongs to, and of its own entry. */
  enrolment: bigint;
  index: bigint;
  /** Of its attestations: the latest that both `issued_at` and the entry's `at` have come to. */
  attested: string;
  /** The highest counter that it attested; those that came. */
  claimed: bigint;
  came: Runs;
  /** Persons have said what becomes of those up to here: the highest that was known when they did; or never. */
  excused: bigint | undefined;
  /** They did so after its end: of all its counters. */
  decided: boolean;
  /** The last counter that is welcome, once it has ended; and when it first did, `""` before. */
  end: bigint | undefined;
  endedAt: string;
  /** Its last counter by its own word: its rotation, not its revocation. */
  final: bigint | undefined;
  revoked: boolean;
}

type At<T> = T & { index: bigint };

/** A cut-off that was not withdrawn, and whether its month is closed. */
export interface Closing {
  index: bigint;
  at: string;
  month: string;
  closed: boolean;
}

export interface State {
  id: string;
  /** Of its checkpoints. */
  origin: string;
  log: Body<"log">;
  tools: { hash: Sha256; verify: Verify };
  /** By the newest `mode`, or entry 0 where there is none. */
  control: "single" | "dual";
  billingFrom: string;
  /** Systems whose events change limits, packs, classes and accounts without a person. */
  sources: ReadonlySet<string>;
  decided: Decided;
  evidence: Evidence;
  feed: Feed;
  money: Money;
  keys: Map<string, Key>;
  /** Kid of a successor to the key that named it. */
  heirs: Map<string, Key>;
  enrolments: Map<bigint, Body<"enrolment">>;
  claimed: Set<bigint>;
  /** By UUID; every enrolment of the log adds to the list. */
  runners: Map<string, EnrolledRunner[]>;
  cards: Map<Tracking, At<Body<"rate_card">>[]>;
  /** By project. */
  classes: Map<string, Body<"project_class">[]>;
  /** By namespace. */
  limits: Map<string, (At<Body<"quota">> & { at: string })[]>;
  /** By source and the source's name for it: all versions. */
  packs: Map<string, At<Body<"pack">>[]>;
  /** The newest that was announced. */
  service: Body<"service"> | undefined;
  closings: Closing[];
  /** The log's own keys by purpose. Each begins with one that no entry added: `FIRST_KEY`. */
  logKeys: Record<Body<"log_key">["purpose"], Map<string, "added" | "retired">>;
}

/** Stands for a key whose vkey the log has not said yet. */
export const FIRST_KEY = "";

export function startState(
  { body, log }: EntryOf<"log">,
  parts: Pick<State, "decided" | "evidence" | "feed" | "money" | "origin" | "tools">,
): State {
  return {
    ...parts,
    id: log,
    log: body,
    control: body.control,
    billingFrom: body.billing_from,
    sources: new Set(),
    keys: new Map(),
    heirs: new Map(),
    enrolments: new Map(),
    claimed: new Set(),
    runners: new Map(),
    cards: new Map(),
    classes: new Map(),
    limits: new Map(),
    packs: new Map(),
    service: undefined,
    closings: [],
    logKeys: {
      checkpoint: new Map([[FIRST_KEY, "added"]]),
      receipt: new Map([[FIRST_KEY, "added"]]),
    },
  };
}

/** The newest of a list, by its place in the log, that had begun at the instant (BYTES §4). */
export function inForce<T extends { effective_from: string }>(
  list: readonly T[] | undefined,
  instant: string,
): T | undefined {
  for (let i = (list?.length ?? 0) - 1; i >= 0; i -= 1) {
    const value = list?.[i];
    if (value !== undefined && value.effective_from <= instant) return value;
  }
  return undefined;
}

/** Those of a list that were in force at some instant of a span: none that came later had begun by then. */
export function inForceDuring<T extends { effective_from: string }>(
  list: readonly T[] | undefined,
  { start, over }: { start: string; over: string },
): T[] {
  let gone = over;
  return (list ?? []).toReversed().filter(({ effective_from: from }) => {
    const held = from < gone && start < gone;
    if (from < gone) gone = from;
    return held;
  });
}

export function append<K, V>(lists: Map<K, V[]>, key: K, value: V): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}
