/** What an entry says of one build, with its charge worked out again from what the entry itself says. */
import type { EntryOf } from "../../src/core/entry.ts";
import type { Report } from "../../src/core/report.ts";
import { charge, readFraction } from "../rating.ts";

/** `charge` is of usage alone: what was held, or is in conflict, costs nothing. */
export interface Build {
  job: string;
  project: string;
  namespace: string;
  runner: string;
  kid: string;
  finished_at: string;
  duration_ms: string;
  charge?: Charge;
}

interface Charge {
  factor: string;
  compute_ms: string;
  /** Four decimals, half up. */
  compute_minutes: string;
  billable: boolean;
  billing_month: string;
  tracking: string;
}

export type ReportEntry = EntryOf<"usage"> | EntryOf<"conflict"> | EntryOf<"hold">;

export function buildOf(entry: ReportEntry, kid: string, report: Report): Build {
  const { job, runner, usage } = report;
  return {
    job: job.id,
    project: job.project_id,
    namespace: job.root_namespace_id,
    runner: runner.uuid,
    kid,
    finished_at: usage.finished_at,
    duration_ms: usage.duration_ms,
    ...(entry.kind === "usage" && { charge: chargeOf(entry, report) }),
  };
}

/** By the entry's own factor: that it is the right one takes the entries before it, and `verify`. */
function chargeOf({ body }: EntryOf<"usage">, { usage }: Report): Charge {
  const { billable, billing_month, factor, tracking } = body;
  const fraction = readFraction(factor);
  if (fraction === undefined) throw new Error("build: an entry whose factor is none");
  const compute_ms = charge(usage.duration_ms, fraction);
  const compute_minutes = minutes(compute_ms);
  return { factor, compute_ms, compute_minutes, billable, billing_month, tracking };
}

const MINUTE_MICRO = 60_000n * 1_000_000n;
const PLACES = 4;
const SCALE = 10n ** BigInt(PLACES);

function minutes(compute_ms: string): string {
  const micro = BigInt(compute_ms.replace(".", ""));
  const scaled = (2n * micro * SCALE + MINUTE_MICRO) / (2n * MINUTE_MICRO);
  return `${scaled / SCALE}.${String(scaled % SCALE).padStart(PLACES, "0")}`;
}
