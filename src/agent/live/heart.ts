/**
 * Says what runs, and takes the answers. Nothing is queued: what one request could not say, the next
 * says better, as elapsed time is cumulative.
 */
import { z } from "zod";
import { IntegerText } from "../../core/unit.ts";
import { Client, parseAnswer, refusal, type Surroundings } from "../client.ts";
import { AgentError } from "../failure.ts";
import type { SigningKey } from "../key.ts";
import { Patience } from "../patience.ts";
import { type Enrolment, enrolmentFor, keyOf, readEnrolments } from "../state.ts";
import { type Running, type Signed, signHeartbeats } from "./running.ts";

export interface HeartOptions {
  /** The agent's state folder; enrolments are read anew for each beat, as keys rotate. */
  folder: string;
  surroundings: Surroundings;
  signal: AbortSignal | undefined;
}

/** What became of the jobs of one beat. */
export interface Beat<R extends Running = Running> {
  /** Those of which the answer is that they must stop. */
  stop: ReadonlySet<R>;
  /** How many were answered, either way. */
  heard: number;
  /** Of an instance that is not enrolled here. */
  unplaced: number;
  /** Why others were not answered, in whole sentences. */
  troubles: readonly string[];
}

/** What the service takes in one request. */
const HEARTBEATS_MAX = 500;
/** One answer. A service that takes longer is asked again while the beat lasts. */
const TIMEOUT_MS = 10_000;

/** New members are let pass: a service may be newer than its agents. */
const Decision = z.object({
  job_id: IntegerText,
  allowed: z.boolean(),
  job_status: z.string(),
});
const Results = z.object({
  results: z.array(z.object({ code: z.string(), decisions: z.array(Decision).default([]) })),
});
type Result = z.infer<typeof Results>["results"][number];

export class Heart {
  readonly #options: HeartOptions;
  readonly #clients = new Map<string, Client>();

  constructor(options: HeartOptions) {
    this.#options = options;
  }

  /**
   * Never throws for want of an answer: that is among the troubles, and stops no job.
   * @param patienceMs when answers are no longer of use
   * @throws AgentError `damaged`, or the signal's reason
   */
  async beat<R extends Running>(running: readonly R[], patienceMs: number): Promise<Beat<R>> {
    const { folder } = this.#options;
    const groups = new Map<Enrolment, R[]>();
    let unplaced = 0;
    const enrolments = readEnrolments(folder);
    for (const one of running) {
      const enrolment = enrolmentFor(enrolments, one.uniqueId, one.runner.uuid);
      if (enrolment === undefined) {
        unplaced += 1;
        continue;
      }
      const group = groups.get(enrolment) ?? [];
      groups.set(enrolment, group);
      group.push(one);
    }
    const servers = new Map<string, Signed<R>[]>();
    for (const [{ kid, log, server }, group] of groups) {
      const signed = this.#sign(keyOf(folder, kid), log, group);
      servers.set(server, [...(servers.get(server) ?? []), ...signed]);
    }
    const sent = await Promise.all(
      [...servers].map(([server, signed]) => this.#send(server, signed, patienceMs)),
    );
    return {
      stop: new Set(sent.flatMap(({ stop }) => stop)),
      heard: sent.reduce((sum, { heard }) => sum + heard, 0),
      unplaced,
      troubles: sent.flatMap(({ troubles }) => troubles),
    };
  }

  #sign<R extends Running>(key: SigningKey, log: string, running: readonly R[]): Signed<R>[] {
    return signHeartbeats(key, log, running, this.#options.surroundings.now());
  }

  async #send<R extends Running>(
    server: string,
    signed: readonly Signed<R>[],
    patienceMs: number,
  ): Promise<{ stop: R[]; heard: number; troubles: string[] }> {
    const said = { stop: [] as R[], heard: 0, troubles: [] as string[] };
    const patience = new Patience(patienceMs, Number.POSITIVE_INFINITY);
    try {
      for (let first = 0; first < signed.length; first += HEARTBEATS_MAX) {
        const part = signed.slice(first, first + HEARTBEATS_MAX);
        const results = await this.#ask(server, part, patience);
        for (const [i, { running }] of part.entries()) take(said, server, running, results[i]);
      }
    } catch (error) {
      if (!(error instanceof AgentError)) throw error;
      said.troubles.push(error.message);
    }
    return said;
  }

  async #ask(server: string, signed: readonly Signed[], patience: Patience): Promise<Result[]> {
    const client = this.#client(server);
    const body = JSON.stringify({ heartbeats: signed.map(({ jws }) => jws) });
    const post = { type: "application/json", body };
    const answer = await client.request("v1/heartbeats", post, patience);
    if (answer.status !== 200) throw refusal(client, "heartbeats", answer);
    const { results } = parseAnswer(Results, client, answer);
    if (results.length === signed.length) return results;
    throw new AgentError("protocol", `${client.server} answered for other heartbeats than it got.`);
  }

  #client(server: string): Client {
    const { surroundings, signal } = this.#options;
    const client =
      this.#clients.get(server) ??
      new Client({ server, surroundings, signal, timeoutMs: TIMEOUT_MS });
    this.#clients.set(server, client);
    return client;
  }
}

/** A decision counts for a job of its own heartbeat only, and stops it only if all of it says so. */
function take<R extends Running>(
  said: { stop: R[]; heard: number; troubles: string[] },
  server: string,
  running: readonly R[],
  result: Result | undefined,
): void {
  if (result?.code !== "heard") {
    const jobs = `${running.length} ${running.length === 1 ? "job" : "jobs"}`;
    said.troubles.push(`${server} would not hear of ${jobs}: ${result?.code}.`);
    return;
  }
  const decisions = new Map(result.decisions.map((decision) => [decision.job_id, decision]));
  for (const one of running) {
    const decision = decisions.get(one.job.id);
    if (decision === undefined) continue;
    said.heard += 1;
    if (decision.job_status === "failed" && !decision.allowed) said.stop.push(one);
  }
}
