/**
 * Which jobs are on a log. One question at a time for each log, with all that was asked meanwhile: a process
 * that hears of thousands of jobs for the first time, as when another was killed, would else stand in its own
 * way to the database, and its figures grow old meanwhile.
 */
import type { Sql } from "../../store/connect.ts";
import { readJobs } from "../../store/jobs.ts";
import { spoken } from "../log/failure.ts";
import { Lanes } from "../log/lane.ts";

interface Asker {
  jobs: readonly string[];
  resolve: (found: Map<string, bigint>) => void;
  reject: (error: unknown) => void;
}

/** A look by the key for each: some tens of milliseconds. */
const JOBS_MAX = 2_000;
/** Logs whose queues are kept while nobody waits. */
const LOGS_MAX = 1_000;

export class Lookups {
  readonly #sql: Sql;
  readonly #lanes: Lanes<Asker, string>;

  constructor(sql: Sql) {
    this.#sql = sql;
    this.#lanes = new Lanes({
      memory: (log) => log,
      perform: (log, askers) => this.#look(log, askers),
      sizeMax: JOBS_MAX,
      logsMax: LOGS_MAX,
    });
  }

  /** Index of the hosted usage of those that have one. @throws Problem `busy` */
  onLog(log: string, jobs: readonly string[]): Promise<Map<string, bigint>> {
    return new Promise((resolve, reject) => {
      const item = { jobs, resolve, reject };
      this.#lanes.push(log, { kind: "shared", size: jobs.length, item });
    });
  }

  async idle(): Promise<void> {
    await this.#lanes.idle();
  }

  /** Never rejects. */
  async #look(log: string, askers: readonly Asker[]): Promise<void> {
    const asked = new Set(askers.flatMap(({ jobs }) => jobs));
    const keys = Array.from(asked, (jobId) => ({ tracking: "hosted" as const, jobId }));
    try {
      const rows = await readJobs(this.#sql, log, keys);
      const found = new Map(rows.map(({ jobId, index }) => [jobId, index]));
      for (const { jobs, resolve } of askers) resolve(among(found, jobs));
    } catch (error) {
      const reason = spoken(error);
      for (const { reject } of askers) reject(reason);
    }
  }
}

function among(found: ReadonlyMap<string, bigint>, jobs: readonly string[]): Map<string, bigint> {
  const own = new Map<string, bigint>();
  for (const job of jobs) {
    const index = found.get(job);
    if (index !== undefined) own.set(job, index);
  }
  return own;
}
