/**
 * How many jobs one key may speak for: what a heartbeat names is kept for weeks, and a host that makes jobs up
 * would fill Redis and this process with them. No runner has as many.
 */

/** At once; each of the agent's heartbeats names a job again after 30 seconds. */
const JOBS_MAX = 5_000;
const HEARD_MS = 600_000;

/** One job that is said to be in two namespaces is kept in both. */
interface JobKey {
  namespace: string;
  job: string;
}

export class LiveBudget {
  /** Of each key its jobs, by when they were heard last, in epoch milliseconds: the oldest first, of keys too. */
  readonly #keys = new Map<string, Map<string, number>>();
  readonly #max: number;

  constructor(max = JOBS_MAX) {
    this.#max = max;
  }

  /** False for a job that is one too many: the key spoke for as many others in the last ten minutes. */
  takes(kid: string, job: JobKey, now: number): boolean {
    const name = `${job.namespace}:${job.job}`;
    const known = this.#keys.get(kid);
    // Only what is new takes room, so that nearly all that is heard has nothing to look for.
    if (known === undefined) this.#forgetKeys(now - HEARD_MS);
    const jobs = known ?? new Map<string, number>();
    if (!jobs.delete(name)) {
      forget(jobs, now - HEARD_MS);
      if (jobs.size >= this.#max) return false;
    }
    jobs.set(name, now);
    this.#keys.delete(kid);
    this.#keys.set(kid, jobs);
    return true;
  }

  #forgetKeys(before: number): void {
    for (const [kid, jobs] of this.#keys) {
      forget(jobs, before);
      if (jobs.size > 0) break;
      this.#keys.delete(kid);
    }
  }
}

function forget(jobs: Map<string, number>, before: number): void {
  for (const [job, at] of jobs) {
    if (at > before) break;
    jobs.delete(job);
  }
}
