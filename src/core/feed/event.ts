/**
 * What the feed tells of an entry (docs/feed.md): CloudEvents 1.0 with the fields of GitLab's `billable_usage`. A
 * function of the entry and of what the log says of itself: told again it is the same, to the last byte.
 */
import { parseComputeMs, parseSignedComputeMs } from "../charge.ts";
import type { AdjustmentLine } from "../control.ts";
import type { Body, Entry, EntryOf } from "../entry.ts";
import { parseCanonical } from "../json.ts";
import { readCompact } from "../jws.ts";
import { Report } from "../report.ts";
import { monthOf, type Platform } from "../unit.ts";
import { eventId, sequenceOf } from "./id.ts";
import { creditsOf, minutesOf } from "./quantity.ts";

/** What the log says of its installation, and how many compute minutes one credit is, if they are shown. */
export interface Instance {
  readonly platform: Platform;
  readonly unique_id: string;
  /**
   * Of any prefix with the entry. It moves only while it is still to come, and a month is cut off once it is over:
   * of a month that was over before it, it has never said anything else.
   */
  readonly billing_from: string;
  readonly creditMinutes?: bigint | undefined;
}

/** What an event needs and its entry does not say: the entries before have it. */
interface Beside {
  /** Of a usage, the platform's number of its runner; in no report. */
  readonly runnerId?: string | undefined;
  /** Of a withdrawal, the month of the cut-off that it takes back. */
  readonly month?: string | undefined;
}

/** GitLab's fields, then ours. Numbers are texts. */
interface Charge {
  event_id: string;
  unit_of_measure: "compute_minute";
  /** Compute minutes, for showing: `compute_ms` is what is added up. */
  quantity: string;
  realm: "SaaS" | "Dedicated" | "SM";
  timestamp: string;
  unique_instance_id: string;
  /** `""`: a correction of a whole namespace. */
  project_id: string;
  namespace_id: string;
  root_namespace_id: string;
  billing_month: string;
  usage_month: string;
  /** Exact, with six decimals; of a correction signed. */
  compute_ms: string;
}

interface Metadata {
  /** GitLab takes an event without one for one that is not billed. */
  feature_qualified_name: "ci_hosted_runners";
  /** Derived; absent where nobody said what a credit is. */
  credits?: string;
}

export interface UsageData extends Charge {
  event_type: "ci_compute_minutes";
  /** The runner's number. */
  subject: string;
  metadata: Metadata & {
    job_id: string;
    pipeline_id: string;
    runner_uuid: string;
    machine_type: string;
    duration_ms: string;
    factor: string;
  };
}

export interface CorrectionData extends Charge {
  event_type: "ci_compute_minutes_correction";
  subject: "";
  metadata: Metadata & {
    reason: string;
    ticket: string;
    /** Index of the run that it is part of. */
    credit_run?: string;
    /** The event of the usage that it is about. */
    corrects?: string;
    /** The event of the line that it takes back. */
    reverses?: string;
  };
}

interface Data {
  "com.gitlab.billable_usage": UsageData;
  "example.minutebook.billable_usage_corrected": CorrectionData;
  "example.minutebook.month_closing": { billing_month: string };
  /** The event of the cut-off that no longer holds. */
  "example.minutebook.month_closing_withdrawn": { withdraws: string };
  "example.minutebook.month_closed": {
    billing_month: string;
    /** The event of its cut-off. */
    closes: string;
    totals: Body<"month_closed">["totals"];
  };
}
export type EventType = keyof Data;

/** The attributes of CloudEvents 1.0, and its extension `sequence`. */
export type FeedEvent = {
  [T in EventType]: {
    specversion: "1.0";
    id: string;
    source: string;
    type: T;
    time: string;
    datacontenttype: "application/json";
    sequence: string;
    data: Data[T];
  };
}[EventType];

/** In the order of the entry's lines. */
export function eventsOf(
  entry: Entry,
  instance: Instance,
  { month = "", runnerId = "" }: Beside = {},
): FeedEvent[] {
  switch (entry.kind) {
    case "usage":
      return isCharged(entry.body) ? [usageEvent(entry, instance, runnerId)] : [];
    case "adjustment":
      return entry.body.lines.map((line, at) => {
        const data = correctionData(entry, line, at, instance);
        return event(entry, "example.minutebook.billable_usage_corrected", data, at);
      });
    case "month_closing":
    case "month_closed":
      return isBilled(entry.body.month, instance) ? [monthEvent(entry)] : [];
    case "month_closing_withdrawn":
      return isBilled(month, instance) ? [monthEvent(entry)] : [];
    default:
      return [];
  }
}

/** Of a month that was over before `billing_from` nobody is told anything. */
function isBilled(month: string, { billing_from }: Instance): boolean {
  return month >= monthOf(billing_from);
}

type MonthMarker = EntryOf<"month_closing" | "month_closing_withdrawn" | "month_closed">;

function monthEvent(entry: MonthMarker): FeedEvent {
  const { body, kind, log } = entry;
  switch (kind) {
    case "month_closing": {
      const data = { billing_month: body.month };
      return event(entry, "example.minutebook.month_closing", data);
    }
    case "month_closing_withdrawn": {
      const data = { withdraws: eventId(log, `${body.closing}/0`) };
      return event(entry, "example.minutebook.month_closing_withdrawn", data);
    }
    case "month_closed": {
      const { closing, month, totals } = body;
      const data = { billing_month: month, closes: eventId(log, `${closing}/0`), totals };
      return event(entry, "example.minutebook.month_closed", data);
    }
  }
}

/** GitLab's client refuses a quantity of 0. */
function isCharged({ compute_ms, not_billable }: Body<"usage">): boolean {
  return not_billable === "" && parseComputeMs(compute_ms) > 0n;
}

function event<T extends EventType>(
  { at, index, log }: Entry,
  type: T,
  data: Data[T],
  line = 0,
): FeedEvent {
  return {
    specversion: "1.0",
    id: eventId(log, `${index}/${line}`),
    source: `/logs/${log}`,
    type,
    time: at,
    datacontenttype: "application/json",
    sequence: sequenceOf(index, line),
    data,
  } as FeedEvent;
}

function usageEvent(entry: EntryOf<"usage">, instance: Instance, runnerId: string): FeedEvent {
  const { body, index, log } = entry;
  const { job, runner, usage } = reportIn(body.jws);
  const { billing_month, compute_ms, factor, machine_type, usage_month } = body;
  const data: UsageData = {
    event_id: eventId(log, `${index}/0`),
    event_type: "ci_compute_minutes",
    ...measured(compute_ms, instance),
    timestamp: usage.finished_at,
    subject: runnerId,
    project_id: job.project_id,
    namespace_id: job.root_namespace_id,
    root_namespace_id: job.root_namespace_id,
    ...{ billing_month, usage_month, compute_ms },
    metadata: {
      ...described(compute_ms, instance),
      ...{ job_id: job.id, pipeline_id: job.pipeline_id, runner_uuid: runner.uuid },
      ...{ duration_ms: usage.duration_ms, factor, machine_type },
    },
  };
  return event(entry, "com.gitlab.billable_usage", data);
}

function correctionData(
  { at: timestamp, body, index, log }: EntryOf<"adjustment">,
  line: AdjustmentLine,
  at: number,
  instance: Instance,
): CorrectionData {
  const { amount: compute_ms, namespace_id, project_id, usage_month } = line;
  const { billing_month, credit_run, reason, ticket } = body;
  return {
    event_id: eventId(log, `${index}/${at}`),
    event_type: "ci_compute_minutes_correction",
    ...measured(compute_ms, instance),
    timestamp,
    subject: "",
    ...{ project_id, namespace_id, root_namespace_id: namespace_id },
    ...{ billing_month, usage_month, compute_ms },
    metadata: {
      ...described(compute_ms, instance),
      ...{ reason, ticket },
      ...(credit_run !== "" && { credit_run }),
      ...(line.entry !== "" && { corrects: eventId(log, `${line.entry}/0`) }),
      ...(line.reverses !== "" && { reverses: reversed(log, line.reverses) }),
    },
  };
}

/** The event of `<index>/<line>`, which is the name of one. */
function reversed(log: string, line: string): string {
  const [index = "", at = ""] = line.split("/");
  return eventId(log, `${index}/${at}`);
}

const REALM = { dotcom: "SaaS", dedicated: "Dedicated", self_managed: "SM" } as const;

function measured(computeMs: string, { platform, unique_id }: Instance) {
  return {
    unit_of_measure: "compute_minute",
    quantity: minutesOf(parseSignedComputeMs(computeMs)),
    realm: REALM[platform],
    unique_instance_id: unique_id,
  } as const;
}

function described(computeMs: string, { creditMinutes }: Instance) {
  return {
    feature_qualified_name: "ci_hosted_runners",
    ...(creditMinutes !== undefined && {
      credits: creditsOf(parseSignedComputeMs(computeMs), creditMinutes),
    }),
  } as const;
}

/** What stands on the log was let in by the strict reader, so it can be read. */
function reportIn(jws: string): Report {
  const compact = readCompact(jws);
  const report = compact && Report.safeParse(parseCanonical(compact.payload)).data;
  if (report === undefined) throw new Error("feed: a usage whose report cannot be read");
  return report;
}
