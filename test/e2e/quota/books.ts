/** What the test was told, and when: all that the checks at the end go by. */
import type { Decision } from "../../../src/flow/quota/decide.ts";
import type { Job } from "./fleet.ts";

/** Epoch milliseconds by the test's own clock. */
interface Exchange {
  readonly sentAt: number;
  readonly heardAt: number;
}

export interface Told extends Exchange {
  readonly decision: Decision;
  /** Its heartbeat; undefined: the platform asked. */
  readonly job: Job | undefined;
  /** What that said it had used. */
  readonly quarters: number;
}

/** A request that had no answer, or not the right one. */
export interface Failure extends Exchange {
  /** Of the service that was asked. */
  readonly url: string;
  readonly what: string;
}

/** Over is a fault once Redis answers all again. */
export interface Fault {
  readonly beganAt: number;
  overAt: number;
}

export class Books {
  told: Told[] = [];
  failures: Failure[] = [];
  readonly faults: Fault[] = [];
  /** When each entry was known to be on the log at the latest, in the order of time. */
  readonly appended: { at: number; index: bigint }[] = [];

  begin(): Fault {
    const fault = { beganAt: Date.now(), overAt: Number.POSITIVE_INFINITY };
    this.faults.push(fault);
    return fault;
  }

  append(index: bigint): void {
    const last = this.appended.at(-1)?.index ?? -1n;
    if (index > last) this.appended.push({ at: Date.now(), index });
  }
}
