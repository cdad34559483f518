/**
 * Usage entries, and the reports in them, in the form that nearly all of them have. What a pattern
 * takes is what core's reader and its schema take; what it does not take may be good all the same, and
 * is for them to read. Tests hold the two ways to each other, text by text.
 */
import { type Body, GENESIS_PREV } from "../../src/core/entry.ts";
import type { Report } from "../../src/core/report.ts";
import { decodeBase64 } from "../../src/core/text.ts";
import type { Tracking } from "../../src/core/unit.ts";
import type { UsageEntry } from "../archive/block.ts";
import { object, SCALAR, text } from "./pattern.ts";

const INTEGER = text(SCALAR.integer);
const INSTANT = text(SCALAR.instant);
const LOG = text(SCALAR.logId);
const MONTH = text(SCALAR.month);
const NON_EMPTY = text(SCALAR.nonEmpty);
const TEXT = text(SCALAR.text);
const WORD = text(SCALAR.word);

const USAGE = whole(
  object({
    at: INSTANT,
    body: object({
      billable: "(true|false)",
      billing_month: MONTH,
      card: INTEGER,
      class: NON_EMPTY,
      compute_ms: text(SCALAR.charge),
      enrolment: INTEGER,
      factor: text(SCALAR.fraction),
      "hold?": INTEGER,
      jws: '"([\\w-]+)\\.([\\w-]+)\\.([\\w-]{86})"',
      limit: text(`|${SCALAR.integer}`),
      machine_type: NON_EMPTY,
      not_billable: text("|self_managed|before_billing_from|failure_reason"),
      tracking: text("hosted|self_managed"),
      usage_month: MONTH,
    }),
    index: INTEGER,
    kind: '"usage"',
    log: LOG,
    prev: text(SCALAR.hash),
    v: '"1"',
  }),
);

const REPORT = whole(
  object({
    counter: text(SCALAR.positive),
    id: TEXT,
    issued_at: INSTANT,
    job: object({
      id: INTEGER,
      pipeline_id: INTEGER,
      project_id: INTEGER,
      root_namespace_id: INTEGER,
    }),
    log: LOG,
    runner: object({ executor: TEXT, "machine_id?": NON_EMPTY, system_id: TEXT, uuid: NON_EMPTY }),
    usage: object({
      duration_ms: INTEGER,
      failure_reason: WORD,
      finished_at: INSTANT,
      started_at: INSTANT,
      status: WORD,
    }),
  }),
);

/** Among a match's texts: the first of the JWS's three segments, and the runner's UUID. */
const JWS_FIRST = 10;
const JWS_SEGMENTS = 3;
const UUID = 12;

/** Texts that a pattern captured, to be taken one by one in the order of the pattern. */
export class Fields {
  readonly #texts: readonly (string | undefined)[];
  #next: number;

  constructor(texts: readonly (string | undefined)[], first: number) {
    this.#texts = texts;
    this.#next = first;
  }

  /** Empty where an optional member was missing. */
  take(): string {
    const text = this.#texts[this.#next] ?? "";
    this.#next += 1;
    return text;
  }
}

/** What a pattern captured; the whole text comes first. */
export type Match = readonly (string | undefined)[];

export function matchUsage(entry: string): Match | undefined {
  return USAGE.exec(entry) ?? undefined;
}

export function matchReport(payload: string): Match | undefined {
  return REPORT.exec(payload) ?? undefined;
}

/** What was captured of a usage, but for its JWS: what is taken again by `takeUsage`. */
export function textsBesideJws(usage: Match): (string | undefined)[] {
  return [...usage.slice(1, JWS_FIRST), ...usage.slice(JWS_FIRST + JWS_SEGMENTS)];
}

/** The three segments of a usage's JWS, whose last has the length of a signature's. */
export function segmentsOf(usage: Match): { header: string; payload: string; signature: string } {
  const [header = "", payload = "", signature = ""] = usage.slice(
    JWS_FIRST,
    JWS_FIRST + JWS_SEGMENTS,
  );
  return { header, payload, signature };
}

/** What `fact` digests, of a report's payload: none of its texts holds a quote, so each name is there once. */
export function factOf(payload: string, report: Match): string {
  const measured = payload.slice(payload.indexOf('"job":{'), payload.indexOf(',"runner":{'));
  const usage = payload.slice(payload.indexOf('"usage":{'));
  return `{${measured},"runner":{"uuid":"${report[UUID]}"},${usage}`;
}

/** The JWS has gone its own way. */
export function takeUsage(fields: Fields): UsageEntry {
  return {
    at: fields.take(),
    body: {
      billable: fields.take() === "true",
      billing_month: fields.take(),
      card: fields.take(),
      class: fields.take(),
      compute_ms: fields.take(),
      enrolment: fields.take(),
      factor: fields.take(),
      ...optional("hold", fields.take()),
      limit: fields.take(),
      machine_type: fields.take(),
      not_billable: fields.take() as Body<"usage">["not_billable"],
      tracking: fields.take() as Tracking,
      usage_month: fields.take(),
    },
    index: BigInt(fields.take()),
    kind: "usage",
    log: fields.take(),
    prev: decodeBase64(fields.take()) ?? GENESIS_PREV,
  };
}

export function takeReport(fields: Fields): Report {
  return {
    counter: fields.take(),
    id: fields.take(),
    issued_at: fields.take(),
    job: {
      id: fields.take(),
      pipeline_id: fields.take(),
      project_id: fields.take(),
      root_namespace_id: fields.take(),
    },
    log: fields.take(),
    runner: {
      executor: fields.take(),
      ...optional("machine_id", fields.take()),
      system_id: fields.take(),
      uuid: fields.take(),
    },
    usage: {
      duration_ms: fields.take(),
      failure_reason: fields.take(),
      finished_at: fields.take(),
      started_at: fields.take(),
      status: fields.take(),
    },
  };
}

function optional<N extends string>(name: N, text: string): { [K in N]?: string } {
  return (text === "" ? {} : { [name]: text }) as { [K in N]?: string };
}

function whole(pattern: string): RegExp {
  return new RegExp(`^${pattern}$`);
}
