/**
 * What is believed of a request about a job. Anybody who reaches the relay can send one: so it counts for
 * what it says only once GitLab has taken it, and not at all if it shows another token than the job's.
 */
import type { Update } from "./exchange.ts";
import type { Head } from "./proxy.ts";
import type { Register, RelayedJob } from "./register.ts";
import { isEnded, isSuccess } from "./turn.ts";

/** Undefined for a request that does not show the job's token, where that is known. */
export function claimOf(register: Register, id: string, update: Update): Claim | undefined {
  const job = register.get(id);
  const { tokens } = update;
  const isOwn = tokens.length > 0 && tokens.every((token) => token === job?.token);
  if (job?.token !== undefined && !isOwn) return undefined;
  // Nobody else has the job's token: it needs no word of GitLab's for its runner being alive.
  if (job !== undefined && isOwn) register.heard(job);
  return new Claim(register, id, update);
}

export class Claim {
  /** Undefined for one that is not known. */
  readonly job: RelayedJob | undefined;
  readonly #register: Register;
  readonly #id: string;
  readonly #update: Update;
  #isUnderWay = false;

  constructor(register: Register, id: string, update: Update) {
    this.#register = register;
    this.#id = id;
    this.#update = update;
    this.job = register.get(id);
    if (this.job === undefined || update.state !== "last") return;
    // The last word is between the runner and GitLab: until that has answered, nothing is said of the job.
    this.#isUnderWay = true;
    this.job.lastWords += 1;
  }

  answered(head: Head): void {
    this.over();
    const register = this.#register;
    const { job } = this;
    const { state } = this.#update;
    // 403 for want of the right token does not say how the job is.
    const isGone = head.status === 403 && isEnded(head);
    if (isGone || (state === "last" && isSuccess(head))) register.end(this.#id);
    if (job === undefined) return;
    if (state === "last" && head.status === 412) job.logAgain = true;
    if (!isSuccess(head)) return;
    if (state === "running") job.logAgain = false;
    this.#learn(job);
  }

  /** GitLab has taken the job's first `PUT state=running`. */
  begun(): void {
    const job = this.#register.get(this.#id);
    if (job !== undefined) this.#learn(job);
  }

  /** Answered, or never to be. */
  over(): void {
    if (this.#isUnderWay && this.job !== undefined) this.job.lastWords -= 1;
    this.#isUnderWay = false;
  }

  #learn(job: RelayedJob): void {
    job.token ??= this.#update.token;
    this.#register.heard(job);
  }
}
