/**
 * Holds a log to its receipts: each promise is proven under a checkpoint that follows from the one
 * before, or it waits, or what shows that it was broken is written down and its reports are sent again.
 */
import { z } from "zod";
import type { Checkpoint } from "../core/checkpoint.ts";
import { instantText } from "../core/unit.ts";
import { type Client, parseAnswer, refusal } from "./client.ts";
import { type Evidence, type Reason, writeEvidence } from "./evidence.ts";
import { AgentError } from "./failure.ts";
import {
  divergenceOf,
  isOverdue,
  judge,
  keptCheckpoint,
  keyEntries,
  lastIndex,
  openCheckpoint,
  Proved,
} from "./proof.ts";
import type { Spool } from "./spool.ts";
import type { Answered, Divergence, Range } from "./spool-record.ts";
import type { AgentState } from "./state.ts";
import { learn, type Standing, standingOf, type Trust } from "./trust.ts";

/** Proving can wait for the next run; reports must not wait for it. */
const ATTEMPTS = 4;
/** A reader that lags, or a policy of witnesses that changed, shows an older checkpoint for a while. */
const PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
/** Of a receipt, and of a log that shows nothing yet. */
const Refusal = z.object({ code: z.enum(["invalid-receipt", "not-found"]) });

export interface Holding {
  state: AgentState;
  log: string;
  client: Client;
  /** Told of promises looked at, of how many. */
  onProgress?: ((done: number, total: number) => void) | undefined;
}

/** Promises by what this run found; each is one request's receipt. */
export interface Findings {
  /** False where no key of the log is known: then nothing can be proven, and nothing is deleted. */
  provable: boolean;
  proven: number;
  pending: number;
  broken: number;
  unverified: number;
  missing: number;
  forged: number;
  divergence: Divergence;
}

interface Served {
  proved: Proved;
  checkpoint: Checkpoint;
}

/**
 * Looks at every open promise once. Durable after each.
 * @throws AgentError `unavailable`, `refused`, `protocol`: ask later; `untrusted`: no key of the log has
 *   signed what is shown, and nothing is concluded from it
 */
export async function hold(holding: Holding): Promise<Findings> {
  const trust = holding.state.trust(holding.log);
  if (trust === undefined) return nothing(false);
  return await new Holder(holding, trust).run();
}

class Holder {
  readonly #holding: Holding;
  readonly #spool: Spool;
  readonly #findings = nothing(true);
  #trust: Trust;
  /** The newest answer of this run. */
  #served: Served | undefined;
  /** Nothing of the log is shown: asking for another promise would tell no more. */
  #silent = false;
  #gives: boolean | undefined;

  constructor(holding: Holding, trust: Trust) {
    this.#holding = holding;
    this.#spool = holding.state.spool(holding.log);
    this.#trust = trust;
  }

  async run(): Promise<Findings> {
    const total = this.#spool.promises.open;
    let done = 0;
    for (const answered of this.#spool.open()) {
      await this.#look(answered);
      if (this.#findings.divergence !== "") return this.#findings;
      this.#holding.onProgress?.(++done, total);
    }
    // With nothing to prove, the log is still watched.
    const asked = this.#served !== undefined || this.#silent;
    const last = asked ? undefined : this.#anyReceipt();
    if (last !== undefined) await this.#ask(last);
    return this.#findings;
  }

  async #look(answered: Answered): Promise<void> {
    let standing = standingOf(this.#trust, answered);
    if (standing === "unverified" && this.#served === undefined && !this.#silent) {
      // Its key may be one that the log has named since, and any answer would tell.
      await this.#ask(answered);
      if (this.#findings.divergence !== "") return;
      standing = standingOf(this.#trust, answered);
    }
    if (standing === "good") await this.#prove(answered);
    else this.#doWithout(answered, standing);
  }

  async #prove(answered: Answered): Promise<void> {
    const { promise } = answered;
    const at = this.#now;
    const late = isOverdue(answered, at);
    const last = lastIndex(answered);
    if (last === undefined) {
      this.#spool.prove({ promise, at, reports: [] });
      return;
    }
    // What was not covered a moment ago is not worth a request, until its time is over.
    const size = this.#served?.checkpoint.size;
    if (!late && (this.#silent || (size !== undefined && last >= size))) {
      this.#findings.pending += 1;
      return;
    }
    const served = await this.#ask(answered);
    if (this.#findings.divergence !== "") return;
    if (served === undefined) {
      if (late) this.#break(answered, "refused");
      else this.#findings.pending += 1;
      return;
    }
    const verdict = judge(answered, served.proved, served.checkpoint, at);
    if (verdict.kind === "broken") this.#break(answered, verdict.reason, served.proved);
    else this.#findings[verdict.kind] += 1;
    if (verdict.kind === "proven") this.#spool.prove({ promise, at, reports: verdict.reports });
  }

  /** Undefined when the service will not prove the receipt, or the log has diverged. */
  async #ask(answered: Answered): Promise<Served | undefined> {
    const before = this.#before();
    const patience = this.#spool.divergence === "" ? PAUSES_MS : [];
    for (const pause of [...patience, undefined]) {
      const proved = await this.#request(answered, before);
      if (proved === undefined) return undefined;
      const checkpoint = openCheckpoint(this.#trust, proved.checkpoint);
      if (checkpoint === undefined) throw this.#untrusted();
      const divergence = divergenceOf(before, checkpoint, proved.consistency);
      if (divergence === "") return this.#follow({ proved, checkpoint });
      if (pause === undefined) this.#diverge(divergence, { proved, checkpoint });
      else await this.#holding.client.pause(pause);
    }
    return undefined;
  }

  async #request(
    { receipt, results }: Answered,
    before: Checkpoint | undefined,
  ): Promise<Proved | undefined> {
    const { client } = this.#holding;
    const since = before !== undefined && before.size > 0n ? { since: String(before.size) } : {};
    const body = JSON.stringify({ receipt, results, ...since });
    const post = { type: "application/json", body };
    const answer = await client.request("v1/receipts/prove", post, ATTEMPTS);
    if (answer.status === 200) return parseAnswer(Proved, client, answer);
    const refused = Refusal.safeParse(answer.body).data;
    if (refused === undefined) throw refusal(client, "to prove a receipt", answer);
    this.#silent = refused.code === "not-found";
    return undefined;
  }

  /** The checkpoint follows from the one before: from here on the log is held to it. */
  #follow(served: Served): Served {
    const { proved, checkpoint } = served;
    const { log, state } = this.#holding;
    const before = this.#before();
    if (before?.size !== checkpoint.size || this.#spool.divergence !== "") {
      this.#spool.see(proved.checkpoint, "");
    }
    const trust = learn(this.#trust, keyEntries(this.#trust, checkpoint, proved));
    if (JSON.stringify(trust) !== JSON.stringify(this.#trust)) state.save(state.trusting(trust));
    this.#trust = state.trust(log) ?? trust;
    this.#served = served;
    return served;
  }

  /**
   * The log is not what it was. The checkpoint from before stays, and nothing is proven until the log
   * is that log again, or a person says otherwise; what the log may have lost is sent once more.
   */
  #diverge(divergence: Exclude<Divergence, "">, { checkpoint, proved }: Served): void {
    this.#findings.divergence = divergence;
    if (this.#spool.divergence === divergence) return; // found, and acted upon, in an earlier run
    this.#write({ reason: divergence, answer: proved });
    const reports =
      divergence === "rolled-back" ? this.#lost(checkpoint, proved) : this.#spool.kept();
    this.#spool.repeat({ at: this.#now, reports });
    this.#spool.see(this.#spool.checkpoint, divergence);
  }

  /** Reports that a shorter log may have lost. Of those that were covered before, the promise is broken. */
  #lost({ size }: Checkpoint, answer: Proved): Range[] {
    const covered = this.#before()?.size ?? 0n;
    const lost: Range[] = [];
    for (const answered of this.#spool.answers()) {
      const last = lastIndex(answered);
      if (last === undefined || last < size) continue;
      lost.push([answered.first, answered.first + answered.results.length]);
      if (last >= covered || standingOf(this.#trust, answered) !== "good") continue;
      this.#write({ reason: "rolled-back", answer }, answered);
    }
    return lost;
  }

  #break(answered: Answered, reason: Reason, answer?: Proved): void {
    this.#findings.broken += 1;
    this.#write({ reason, ...(answer && { answer }) }, answered);
    this.#repeat(answered, 1);
  }

  /** Sent again after a day, if the service gives receipts now, the reports get one that is good. */
  #doWithout(answered: Answered, standing: Exclude<Standing, "good">): void {
    this.#findings[standing] += 1;
    if (standing === "forged") this.#write({ reason: "forged-receipt" }, answered);
    if (!isOverdue(answered, this.#now) || !this.#givesReceipts()) return;
    if (standing === "unverified") this.#write({ reason: "unknown-key" }, answered);
    this.#repeat(answered, 0);
  }

  #repeat({ first, promise, results }: Answered, broken: number): void {
    const reports: Range[] = [[first, first + results.length]];
    this.#spool.repeat({ at: this.#now, reports, promises: [promise], broken });
  }

  #write(finding: Pick<Evidence, "reason" | "answer">, answered?: Answered): void {
    const promise = answered?.receipt !== undefined && {
      promise: { receipt: answered.receipt, results: answered.results },
    };
    writeEvidence(this.#holding.state.evidence, {
      ...finding,
      found_at: instantText(this.#now),
      trust: this.#trust,
      ...promise,
      kept_checkpoint: this.#spool.checkpoint,
    });
  }

  #anyReceipt(): Answered | undefined {
    for (const answered of this.#spool.answers()) {
      if (standingOf(this.#trust, answered) === "good") return answered;
    }
    return undefined;
  }

  /** The last answer had a good one. */
  #givesReceipts(): boolean {
    const last = this.#spool.lastAnswer();
    this.#gives ??= last !== undefined && standingOf(this.#trust, last) === "good";
    return this.#gives;
  }

  #before(): Checkpoint | undefined {
    return keptCheckpoint(this.#spool.checkpoint);
  }

  #untrusted(): AgentError {
    const { log } = this.#holding;
    return new AgentError(
      "untrusted",
      `${this.#holding.client.server} shows a checkpoint that no trusted key of log ${log} has signed. Nothing is concluded from it.`,
    );
  }

  get #now(): number {
    return this.#holding.client.now();
  }
}

function nothing(provable: boolean): Findings {
  const counts = { proven: 0, pending: 0, broken: 0, unverified: 0, missing: 0, forged: 0 };
  return { provable, ...counts, divergence: "" };
}
