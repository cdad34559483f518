/**
 * Entries that decide how later ones are judged: could the service have let them in after what stood
 * before them? Each is then taken in as it stands, so that what follows is judged by what was said.
 */

import type { Body, Kind } from "../../src/core/entry.ts";
import type { Hash } from "../../src/core/hash.ts";
import { parseVkey } from "../../src/core/note.ts";
import type { ReadEntry } from "../archive/block.ts";
import { CONTROL_RULES } from "../control/rules.ts";
import { judgeApproval, missUse } from "../control/use.ts";
import { EVIDENCE_RULES, eventName } from "../evidence/rules.ts";
import { acknowledge, judgeFollower } from "../feed/rules.ts";
import { MONEY_RULES } from "../money/rules.ts";
import { MONTH_RULES } from "../month/rules.ts";
import { KEY_RULES } from "./keys.ts";
import { RATE_RULES } from "./rates.ts";
import { type Outcome, type Rules, Turn } from "./rule.ts";
import { FIRST_KEY, type State } from "./state.ts";

/** Kinds without a rule decide nothing. */
const RULES: Rules = {
  ...KEY_RULES,
  ...RATE_RULES,
  ...CONTROL_RULES,
  ...MONEY_RULES,
  ...MONTH_RULES,
  ...EVIDENCE_RULES,
  service: announce,
  log_key: logKey,
  feed_ack: acknowledge,
};

/** @param leaf the hash of the entry's bytes */
export function admit(state: State, entry: ReadEntry, leaf: Hash, outcome: Outcome): void {
  const { decided, evidence, feed } = state;
  const awaits = decided.awaiting !== undefined || evidence.released !== undefined;
  if (entry.kind === "usage" && !awaits && feed.due.length === 0) return; // nearly all of them
  const turn = new Turn(entry, leaf, outcome);
  missRelease(state, entry, turn);
  judgeFollower(state, entry, turn);
  if (entry.kind !== "usage") {
    judgeApproval(state, entry.kind, entry.body, turn);
    apply(state, entry.kind, entry.body, turn);
    countEvent(state, entry);
  }
  missUse(state, turn);
}

function apply<K extends Kind>(state: State, kind: K, body: Body<K>, turn: Turn): void {
  RULES[kind]?.(state, body, turn);
}

/** Behind a release stands the usage of what was held, which takes the hold away (judgement.ts). */
function missRelease({ evidence }: State, entry: ReadEntry, turn: Turn): void {
  const { released } = evidence;
  if (released === undefined) return;
  const stands = entry.kind === "usage" && entry.body.hold === String(released);
  turn.expect(stands, "hold-released", `behind the release of entry ${released}`);
  if (!stands) evidence.released = undefined;
}

/** What a source's own count of a day is held against. */
function countEvent({ evidence }: State, { at, body, kind }: ReadEntry): void {
  if (!(COUNTED.includes(kind) && "source" in body)) return;
  const name = eventName(kind, body.source, at.slice(0, 10));
  evidence.events.set(name, (evidence.events.get(name) ?? 0n) + 1n);
}

const COUNTED: readonly Kind[] = ["quota", "pack", "project_class", "account"];

function announce(state: State, body: Body<"service">, turn: Turn): void {
  const before = state.service;
  const { schema_sha256, version } = body;
  const again = version === before?.version && schema_sha256 === before.schema_sha256;
  const older = before !== undefined && isOlder(version, before.version);
  turn.expect(!again && !older, "service-order", `${version} after ${before?.version ?? "none"}`);
  state.service = body;
}

function logKey({ logKeys, origin }: State, body: Body<"log_key">, turn: Turn): void {
  const { purpose, state, vkey } = body;
  const name = purpose === "checkpoint" ? origin : `${origin}/receipt`;
  const key = parseVkey(vkey);
  const detail = `${state} for ${purpose}: ${vkey}`;
  turn.expect(key?.type === "ed25519" && key.name === name, "log-key-form", detail);
  const keys = logKeys[purpose];
  // One that is retired before anybody added it is the first, and of firsts there is one.
  const meant = state === "added" || keys.has(vkey) ? vkey : FIRST_KEY;
  const before = keys.get(meant) ?? "retired";
  keys.set(meant, state).set(vkey, state);
  const left = [...keys.values()].includes("added");
  turn.expect(before !== state && left, "log-key-order", detail);
}

/** Number by number, as in 1.10.0; of versions of another form no order is known. */
function isOlder(version: string, than: string): boolean {
  const [a, b] = [version, than].map((text) => text.split(".").map(Number));
  const at = a?.findIndex((number, i) => number !== b?.[i]) ?? -1;
  return Number(a?.[at]) < Number(b?.[at]);
}
