/** How much each row measures. The ratios of docs/performance.md are those of FULL. */
import { ROUNDS } from "./measure.ts";

export interface Sizes {
  rounds: number;
  /** Reports of one round over HTTP, in batches; long enough that seals and folds are part of it. */
  batched: number;
  /** The same, one a request. */
  single: number;
  /** Reports of one round through append, and builds of one round of its counterpart. */
  appended: number;
  counted: number;
  /** Quota decisions of one round, many a request and one a request, and jobs in heartbeats. */
  decided: number;
  asked: number;
  heard: number;
  /** Entries of the two logs whose age must make no difference. */
  large: number;
  small: number;
  /** New entries that a refresh and a seal are timed with. */
  refreshed: number;
  sealed: number;
  /** Logs at once, those of them that grow, and for how long. */
  logs: number;
  busyLogs: number;
  trafficSeconds: number;
  /** Entries of one export. */
  exported: number;
}

export const FULL: Sizes = {
  rounds: ROUNDS,
  batched: 20_000,
  single: 10_000,
  appended: 20_000,
  counted: 1_500,
  decided: 50_000,
  asked: 2_000,
  heard: 40_000,
  large: 100_000,
  small: 10_000,
  refreshed: 10_000,
  sealed: 1_000,
  logs: 2_000,
  busyLogs: 200,
  trafficSeconds: 30,
  exported: 1_000_000,
};

/** To see that every row runs; too short to judge by. */
export const QUICK: Sizes = {
  rounds: 2,
  batched: 4_000,
  single: 2_000,
  appended: 4_000,
  counted: 300,
  decided: 10_000,
  asked: 500,
  heard: 8_000,
  large: 8_000,
  small: 2_000,
  refreshed: 1_000,
  sealed: 500,
  logs: 200,
  busyLogs: 20,
  trafficSeconds: 5,
  exported: 50_000,
};

/** One run of the benchmarks. */
export interface Run {
  sizes: Sizes;
  /** A folder of the run's own, below which rows make theirs. */
  folder: string;
  /** A line of progress. */
  say(text: string): void;
  /** Runs when all rows are done, the last one first. */
  defer(close: () => Promise<void>): void;
}
