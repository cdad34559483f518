/** What others saw and what differs, as the entries so far have said it. */
import type { Body } from "../../src/core/entry.ts";
import type { Once } from "../tally/once.ts";
import type { Standing } from "../tally/standing.ts";

export interface Span {
  from: string;
  to: string;
}

export interface Evidence {
  breaks: Map<bigint, OpenBreak>;
  /** Of all breaks. */
  fingerprints: Once;
  /** What breaks are said to have healed by. */
  shows: Standing;
  /** What each `source_count` is of; and where breaks that one may open ended, by fingerprint. */
  counts: Map<bigint, Pick<Body<"source_count">, "day" | "kind" | "source">>;
  recounted: Map<string, bigint>;
  /** By runner: what the platform's lists cover, in the order of time and apart from each other. */
  coverage: Map<string, Span[]>;
  environment: Body<"environment"> | undefined;
  /** The last day that has an access digest, and the last that was verified; `""` before the first. */
  accessDay: string;
  verifiedDay: string;
  /** Entries by kind, source and the day that they were written on. */
  events: Map<string, bigint>;
  /** Open holds and conflicts. */
  holds: Map<bigint, OpenHold>;
  conflicts: Map<bigint, OpenConflict>;
  /** A hold that the entry before has released. */
  released: bigint | undefined;
}

export type OpenBreak = Pick<Body<"break">, "code" | "fingerprint" | "job_id" | "kid" | "month"> & {
  /** Of a `counter-gap`: the counters that have not come, where it says which. */
  gap?: Gap;
};

export interface Gap {
  first: bigint;
  last: bigint;
}

export interface OpenHold {
  /** Of its report. */
  digest: Uint8Array;
  finished_at: string;
}

export interface OpenConflict {
  stands: bigint;
  finished_at: string;
  /** Whether an adjustment of what stands has come since. */
  corrected: boolean;
}

export function startEvidence(fingerprints: Once, shows: Standing): Evidence {
  return {
    fingerprints,
    shows,
    counts: new Map(),
    recounted: new Map(),
    breaks: new Map(),
    coverage: new Map(),
    environment: undefined,
    accessDay: "",
    verifiedDay: "",
    events: new Map(),
    holds: new Map(),
    conflicts: new Map(),
    released: undefined,
  };
}
