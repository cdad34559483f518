/** One exchange about a running job, by which its runner may be told to stop it. */
import { type RawHeaders, valuesOf, withHeader } from "./headers.ts";
import type { Head } from "./proxy.ts";
import type { Register, RelayedJob } from "./register.ts";

export interface TurnOptions {
  register: Register;
  /** Whether the newest answer of the service still says that it must stop. */
  mustStop: (job: RelayedJob) => boolean;
  onTold: (id: string) => void;
}

export const JOB_STATUS = "Job-Status";
const ENDED = new Set(["failed", "canceled", "success"]);

export class Turn {
  readonly #options: TurnOptions;
  readonly #id: string;
  readonly #job: RelayedJob;
  #tells = false;

  constructor(options: TurnOptions, id: string, job: RelayedJob) {
    this.#options = options;
    this.#id = id;
    this.#job = job;
  }

  head(head: Head): RawHeaders {
    const { register, mustStop } = this.#options;
    const job = this.#job;
    // Its last word may have overtaken this exchange. And an answer that the runner tries again, or
    // that already ends the job, is not to be spent on what is said once.
    const isOver = register.get(this.#id) !== job || job.lastWords > 0 || job.logAgain;
    if (isOver || job.told || !isSuccess(head) || isEnded(head) || !mustStop(job))
      return head.headers;
    this.#tells = true;
    job.told = true;
    return withHeader(head.headers, JOB_STATUS, "failed");
  }

  ended(whole: boolean): void {
    if (!this.#tells) return;
    const { register, onTold } = this.#options;
    if (!whole) {
      this.#job.told = false; // the runner never had it
      return;
    }
    // After the fact: a relay that is killed in between says it once more, rather than never.
    register.keep(this.#id, this.#job);
    onTold(this.#id);
  }
}

export function isSuccess({ status }: Head): boolean {
  return status >= 200 && status <= 299;
}

/** GitLab itself says that the job has ended. */
export function isEnded({ headers }: Head): boolean {
  return valuesOf(headers, "job-status").some((value) => ENDED.has(value));
}
