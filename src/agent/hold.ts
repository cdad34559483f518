/**
 * Holds a log to its receipts: each promise is proven under a checkpoint that follows from the one
 * before, or it waits, or what shows that it was broken is written down and its reports are sent again.
 */
import { z } from "zod";
import type { Checkpoint } from "../core/checkpoint.ts";
import { Breach } from "./breach.ts";
import { type Client, parseAnswer, refusal } from "./client.ts";
import { AgentError } from "./failure.ts";
import { type Findings, nothingFound } from "./findings.ts";
import { Patience } from "./patience.ts";
import { digestOf, isOverdue, lastIndex, unanswered } from "./promise.ts";
import {
  divergenceOf,
  judge,
  keptCheckpoint,
  keyEntries,
  openCheckpoint,
  Proved,
} from "./proof.ts";
import type { Spool } from "./spool.ts";
import type { Answered, Divergence, Range } from "./spool-record.ts";
import type { AgentState } from "./state.ts";
import { learn, standingOf, type Trust } from "./trust.ts";

/** Proving can wait for the next run, and reports must not wait for it: a host imports every few minutes. */
const PATIENCE_MS = 20_000;
const ATTEMPTS = 4;
/** A reader that lags, or a policy of witnesses that changed, shows an older checkpoint for a while. */
const PAUSES_MS = [1_000, 2_000, 4_000, 8_000, 16_000, 32_000];
/** No reader lags for longer, where there is no patience to see. */
const LAG_MS = 7_000;
/** Of a receipt, and of a log that shows nothing yet. */
const Refusal = z.object({ code: z.enum(["invalid-receipt", "not-found"]) });

export interface Holding {
  state: AgentState;
  log: string;
  client: Client;
  /** In all; 20 seconds when left out. */
  patience?: Patience;
  /** Told of promises looked at, of how many. */
  onProgress?: ((done: number, total: number) => void) | undefined;
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
  if (trust === undefined) return nothingFound(false);
  return await new Holder(holding, trust).run();
}

class Holder {
  readonly #holding: Holding;
  readonly #spool: Spool;
  readonly #findings = nothingFound(true);
  readonly #patience: Patience;
  readonly #breach: Breach;
  #trust: Trust;
  /** The newest answer of this run. */
  #served: Served | undefined;
  /** Nothing of the log is shown: asking for another promise would tell no more. */
  #silent = false;
  /** What is overdue could not be judged: no entry is shown. */
  #isMute = false;

  constructor(holding: Holding, trust: Trust) {
    this.#holding = holding;
    this.#spool = holding.state.spool(holding.log);
    this.#patience = holding.patience ?? new Patience(PATIENCE_MS, ATTEMPTS);
    this.#trust = trust;
    this.#breach = new Breach({
      spool: this.#spool,
      client: holding.client,
      evidence: holding.state.evidence,
      findings: this.#findings,
      trust: () => this.#trust,
    });
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
    if (this.#isMute) throw this.#mute();
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
    else this.#breach.doWithout(answered, standing);
  }

  async #prove(answered: Answered): Promise<void> {
    const late = isOverdue(answered, this.#now);
    const last = lastIndex(answered);
    if (last === undefined) {
      this.#breach.promisedNothing(answered);
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
    if (served !== undefined) this.#judge(answered, served);
    else if (late) this.#breach.break(answered, "refused");
    else this.#findings.pending += 1;
  }

  #judge(answered: Answered, { checkpoint, proved }: Served): void {
    const { log } = this.#holding;
    const at = this.#now;
    const reportOf = ownReports(this.#spool, answered);
    const verdict = judge(answered, proved, { ...checkpoint, log }, at, reportOf);
    switch (verdict.kind) {
      case "broken":
        this.#breach.break(answered, verdict.reason, proved);
        break;
      case "mute":
        this.#findings.pending += 1;
        this.#isMute ||= isOverdue(answered, at);
        break;
      case "pending":
        this.#findings.pending += 1;
        break;
      case "proven": {
        this.#findings.proven += 1;
        this.#spool.prove({ promise: answered.promise, at, reports: verdict.reports });
        const reports = unanswered(answered);
        if (reports.length > 0) this.#spool.repeat({ at, reports });
        break;
      }
    }
  }

  /** Undefined when the service will not prove the receipt, or the log has diverged. */
  async #ask(answered: Answered): Promise<Served | undefined> {
    const before = this.#before();
    const pauses = this.#spool.divergence === "" ? PAUSES_MS : [];
    let waited = 0;
    for (const pause of [...pauses, undefined]) {
      const proved = await this.#request(answered, before);
      if (proved === undefined) return undefined;
      const checkpoint = openCheckpoint(this.#trust, proved.checkpoint);
      if (checkpoint === undefined) throw this.#untrusted();
      const divergence = divergenceOf(before, checkpoint, proved.consistency);
      if (divergence === "") return this.#follow({ proved, checkpoint });
      if (pause === undefined || (waited >= LAG_MS && pause >= this.#patience.leftMs)) {
        this.#diverge(divergence, { proved, checkpoint });
        return undefined;
      }
      await this.#holding.client.pause(pause, this.#patience);
      waited += pause;
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
    const answer = await client.request("v1/receipts/prove", post, this.#patience);
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
    this.#breach.write({ reason: divergence, answer: proved });
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
      this.#breach.write({ reason: "rolled-back", answer }, answered);
    }
    return lost;
  }

  #anyReceipt(): Answered | undefined {
    for (const answered of this.#spool.answers()) {
      if (standingOf(this.#trust, answered) === "good") return answered;
    }
    return undefined;
  }

  #before(): Checkpoint | undefined {
    return keptCheckpoint(this.#spool.checkpoint);
  }

  #mute(): AgentError {
    return new AgentError(
      "protocol",
      `${this.#holding.client.server} proves that entries stand, and does not show them: it hides them, or is older than this agent. Nothing of that is taken for proven.`,
    );
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

/** The reports of an answer by their digests; read from the files only if one is asked for. */
function ownReports(
  spool: Spool,
  { first, results }: Answered,
): (digest: string) => string | undefined {
  let known: Map<string, string> | undefined;
  return (digest) => {
    const texts = (): Generator<string> => spool.texts([first, first + results.length]);
    known ??= new Map(Array.from(texts(), (jws) => [digestOf(jws), jws]));
    return known.get(digest);
  };
}
