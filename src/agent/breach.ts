/**
 * What follows from a promise that is not kept, or that is none: what shows it is written down, and the
 * reports are sent again, less and less often.
 */
import { instantText } from "../core/unit.ts";
import type { Client } from "./client.ts";
import { type Evidence, type Reason, writeEvidence } from "./evidence.ts";
import type { Findings } from "./findings.ts";
import { isOverdue, unanswered } from "./promise.ts";
import type { Proved } from "./proof.ts";
import type { Spool } from "./spool.ts";
import type { Answered, Range } from "./spool-record.ts";
import type { Standing, Trust } from "./trust.ts";

/** Before reports are sent once more for a second time; doubled for each time since. */
const RESEND_MS_FIRST = 3_600_000;
const RESEND_MS_MAX = 7 * 24 * RESEND_MS_FIRST;

export interface BreachOptions {
  spool: Spool;
  client: Client;
  /** The folder of evidence. */
  evidence: string;
  findings: Findings;
  /** As it is by now: a run may learn keys. */
  trust(): Trust;
}

export class Breach {
  readonly #options: BreachOptions;
  readonly #spool: Spool;

  constructor(options: BreachOptions) {
    this.#options = options;
    this.#spool = options.spool;
  }

  break(answered: Answered, reason: Reason, answer?: Proved): void {
    this.#options.findings.broken += 1;
    this.write({ reason, ...(answer && { answer }) }, answered);
    if (this.#isDue(answered)) this.#repeat(answered, 1);
  }

  /**
   * Sent again, the reports may get a receipt that is good: after an hour, in case the signer was away
   * for a moment, and from the day on that the log is accused.
   */
  doWithout(answered: Answered, standing: Exclude<Standing, "good">): void {
    this.#options.findings[standing] += 1;
    if (standing === "forged") this.write({ reason: "forged-receipt" }, answered);
    if (this.#options.trust().receipt_vkeys.length === 0) return; // of a service that is not known to give any
    const now = this.#now;
    const late = isOverdue(answered, now);
    if (late && standing === "missing") this.write({ reason: "no-receipt" }, answered);
    if (late && standing === "unverified") this.write({ reason: "unknown-key" }, answered);
    const isFirst = this.#spool.tries(answered) === 0 && now - answered.at >= RESEND_MS_FIRST;
    if (isFirst || (late && this.#isDue(answered))) this.#repeat(answered, 0);
  }

  /** At once for the first time, and then less and less often: who lies must not be fed. */
  #isDue(answered: Answered): boolean {
    const tries = this.#spool.tries(answered);
    const pause = tries === 0 ? 0 : Math.min(RESEND_MS_FIRST * 2 ** (tries - 1), RESEND_MS_MAX);
    const passed = this.#now - answered.at;
    return passed >= pause || passed < 0; // a clock that was set back must not put it off
  }

  #repeat({ first, promise, results }: Answered, broken: number): void {
    const reports: Range[] = [[first, first + results.length]];
    this.#spool.repeat({ at: this.#now, reports, promises: [promise], broken });
  }

  write(finding: Pick<Evidence, "reason" | "answer">, answered?: Answered): void {
    const { client, evidence, trust } = this.#options;
    const { at, receipt, results } = answered ?? {};
    const promise = at !== undefined &&
      results && {
        promise: {
          answered_at: instantText(at),
          ...(receipt !== undefined && { receipt }),
          results,
        },
      };
    const { clockOffset: clock_offset_ms } = client;
    writeEvidence(evidence, {
      ...finding,
      found_at: instantText(this.#now),
      ...(clock_offset_ms !== undefined && { clock_offset_ms }),
      trust: trust(),
      ...promise,
      kept_checkpoint: this.#spool.checkpoint,
    });
  }

  /** All were refused, or the service did not say what became of them: once may be a fault. */
  promisedNothing(answered: Answered): void {
    const { promise } = answered;
    const at = this.#now;
    if (unanswered(answered).length === 0) {
      this.#spool.repeat({ at, reports: [], promises: [promise] });
    } else if (isOverdue(answered, at) || this.#spool.tries(answered) > 0) {
      this.break(answered, "no-answer");
    } else {
      this.#options.findings.pending += 1;
      this.#repeat(answered, 0);
    }
  }

  get #now(): number {
    return this.#options.client.now();
  }
}
