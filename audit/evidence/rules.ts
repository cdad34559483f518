/** Reconciliation, and that controls were at work (DESIGN §§11, 12). */
import type { Body } from "../../src/core/entry.ts";
import { decodeBase64 } from "../../src/core/text.ts";
import type { Rules, Turn } from "../prefix/rule.ts";
import type { Key, State } from "../prefix/state.ts";
import { gapIn, heal } from "./healing.ts";
import type { Span } from "./state.ts";

export const EVIDENCE_RULES = {
  coverage,
  break: openBreak,
  break_assigned: assignBreak,
  break_resolved: resolveBreak,
  source_count: countSource,
  access_digest: accessDigest,
  access_review: accessReview,
  environment,
  verification,
  hold_resolved: resolveHold,
  conflict_resolved: resolveConflict,
} satisfies Rules;

function coverage({ evidence }: State, body: Body<"coverage">, turn: Turn): void {
  const { from, runner_id, to } = body;
  const over = from < to && to <= turn.at;
  turn.expect(over, "coverage-span", `${from} to ${to}, written ${turn.at}`);
  const spans = evidence.coverage.get(runner_id) ?? [];
  evidence.coverage.set(runner_id, joined([...spans, { from, to }]));
}

/** Those that touch or overlap become one: contiguous coverage is one span, however often it was pulled. */
function joined(spans: Span[]): Span[] {
  const apart: Span[] = [];
  for (const span of spans.sort((a, b) => (a.from < b.from ? -1 : 1))) {
    const last = apart.at(-1);
    if (last === undefined || span.from > last.to) apart.push({ ...span });
    else if (span.to > last.to) last.to = span.to;
  }
  return apart;
}

/** What a key that has ended may owe for ever. */
const OWING: ReadonlySet<string> = new Set(["counter-gap", "missing-attestation"]);

function openBreak({ evidence, tools }: State, body: Body<"break">, turn: Turn): void {
  evidence.fingerprints.note(decodeBase64(body.fingerprint) ?? new Uint8Array(), turn.index);
  const { usage } = body;
  const earlier = usage === "" || BigInt(usage) < turn.index;
  turn.expect(earlier, "break-form", `it is about entry ${usage}`);
  const { code, fingerprint, job_id, kid, month } = body;
  const gap = code === "counter-gap" ? gapIn(body, tools.hash) : undefined;
  const open = { code, fingerprint, job_id, kid, month, ...(gap !== undefined && { gap }) };
  evidence.breaks.set(turn.index, open);
}

function assignBreak({ evidence }: State, body: Body<"break_assigned">, turn: Turn): void {
  const open = evidence.breaks.has(BigInt(body.break));
  turn.expect(open, "break-end", `entry ${body.break} is no open break`);
}

function resolveBreak(state: State, body: Body<"break_resolved">, turn: Turn): void {
  const { evidence } = state;
  const open = evidence.breaks.get(BigInt(body.break));
  turn.expect(open !== undefined, "break-end", `entry ${body.break} is no open break`);
  evidence.breaks.delete(BigInt(body.break));
  const { evidence: shown, outcome } = body;
  const needed = outcome === "healed";
  const earlier = shown === "" ? !needed : BigInt(shown) < turn.index;
  turn.expect(earlier, "break-form", `${outcome}, and entry ${shown || "none"} shows it`);
  if (open === undefined) return;
  if (needed) heal(state, open, body, turn);
  else if (OWING.has(open.code)) excuse(state.keys.get(open.kid));
  if (open.code === "source-count") evidence.recounted.set(open.fingerprint, turn.index);
}

/** What nobody knew of then nobody has decided about. */
function excuse(key: Key | undefined): void {
  if (key === undefined) return;
  const { came, claimed, end } = key;
  key.excused = claimed > came.last ? claimed : came.last;
  key.decided ||= end !== undefined;
}

function countSource({ evidence }: State, body: Body<"source_count">, turn: Turn): void {
  const { counted, day, kind, source } = body;
  turn.expect(day < turn.at, "day-order", `${day}, written ${turn.at}`);
  const stands = evidence.events.get(eventName(kind, source, day)) ?? 0n;
  turn.expect(BigInt(counted) === stands, "source-count", `${counted} counted, ${stands} stand`);
  evidence.counts.set(turn.index, { day, kind, source });
}

export function eventName(kind: string, source: string, day: string): string {
  return JSON.stringify([kind, source, day]);
}

function accessDigest(
  { evidence }: State,
  { day, lines }: Body<"access_digest">,
  turn: Turn,
): void {
  const over = day < turn.at.slice(0, 10) && day > evidence.accessDay;
  turn.expect(over, "day-order", `${day} after ${evidence.accessDay || "none"}, at ${turn.at}`);
  turn.expect(lines !== "0", "access-digest", "a day without a line has no digest");
  evidence.accessDay = day;
}

function accessReview(_: State, { from, kept, principals, to }: Body<"access_review">, turn: Turn) {
  const past = from <= to && to <= turn.at;
  turn.expect(past, "day-order", `${from} to ${to}, written ${turn.at}`);
  const some = BigInt(kept) <= BigInt(principals);
  turn.expect(some, "access-review", `${kept} of ${principals} kept`);
}

/** Written when something is no longer as the entry before says: never twice the same. */
function environment({ evidence }: State, body: Body<"environment">, turn: Turn): void {
  const { environment: before } = evidence;
  const names = ENVIRONMENT.filter((name) => body[name] !== before?.[name]);
  turn.expect(names.length > 0, "environment-same", "nothing has changed since the one before");
  evidence.environment = body;
}

const ENVIRONMENT = [
  "dependencies_sha256",
  "grants_sha256",
  "schema_sha256",
  "triggers_sha256",
  "version",
] as const;

function verification({ evidence }: State, body: Body<"verification">, turn: Turn): void {
  const { day, findings, from, outcome, to } = body;
  const over = day <= turn.at && day > evidence.verifiedDay;
  turn.expect(over, "day-order", `${day} after ${evidence.verifiedDay || "none"}, at ${turn.at}`);
  evidence.verifiedDay = day;
  const [first, end] = [BigInt(from), BigInt(to)];
  const some = outcome === "nothing" ? first === end : first < end;
  turn.expect(some && end <= turn.index, "verification", `entries ${from} to ${to}, ${outcome}`);
  const found = findings !== "0";
  turn.expect(found === (outcome === "failed"), "verification", `${outcome}, ${findings} findings`);
}

function resolveHold({ evidence }: State, { hold, outcome }: Body<"hold_resolved">, turn: Turn) {
  const index = BigInt(hold);
  const open = evidence.holds.has(index);
  turn.expect(open, "hold-end", `entry ${hold} is no open hold`);
  if (open && outcome === "released") evidence.released = index;
  else evidence.holds.delete(index);
}

function resolveConflict(
  { evidence }: State,
  { conflict, outcome }: Body<"conflict_resolved">,
  turn: Turn,
): void {
  const open = evidence.conflicts.get(BigInt(conflict));
  turn.expect(open !== undefined, "conflict-end", `entry ${conflict} is no open conflict`);
  evidence.conflicts.delete(BigInt(conflict));
  if (open === undefined || outcome === "stands") return;
  turn.expect(open.corrected, "conflict-end", `no adjustment of entry ${open.stands} came before`);
}
