/** Everything that is said to two services while faults happen: heartbeats, reports, starts, raises, packs, questions. */
import { setTimeout as delay } from "node:timers/promises";
import { vi } from "vitest";
import type { Decision } from "../../../src/flow/quota/decide.ts";
import type { Heard, Unheard } from "../../../src/flow/quota/heartbeat.ts";
import type { Serving } from "../process.ts";
import type { Books } from "./books.ts";
import type { Fleet, Host, Job, Statement } from "./fleet.ts";

/** So long from one beat of a host to the next, where the machine keeps up. */
const BEAT_MS = 3_000;
const REPORT_MS = 500;
const ENDING = 16;
const CHANGE_MS = 1_000;
const SAMPLE_MS = 250;
const SAMPLED = 100;
/** Of a question about a namespace rather than a job. */
const NOBODY = "999999999";

export interface Running extends Serving {
  /** When it was killed; infinite while it was not. */
  killedAt: number;
}

export interface Site {
  log: string;
  token: string;
  /** Two of them; either may be replaced. */
  services: Running[];
}

export class Traffic {
  readonly fleet: Fleet;
  readonly #site: Site;
  readonly #books: Books;
  #loops: Promise<void>[] = [];
  #running = false;
  #turn = 0;
  #version = 1_000_000;
  /** Namespaces in which a job wants to start. */
  #pending: string[] = [];
  /** Signed, and not yet answered. */
  #unsent: string[] = [];

  constructor(site: Site, fleet: Fleet, books: Books) {
    this.#site = site;
    this.fleet = fleet;
    this.#books = books;
  }

  run(): void {
    this.#running = true;
    const every = async (ms: number, act: () => Promise<void>): Promise<void> => {
      while (this.#running) await Promise.all([act(), delay(ms)]);
    };
    this.#loops = [
      ...this.fleet.hosts.map((host) => every(BEAT_MS, () => this.#beatOf(host))),
      every(REPORT_MS, () => this.#turnOver()),
      every(CHANGE_MS, () => this.#change()),
      every(SAMPLE_MS, () => this.#sample()),
    ];
  }

  /** Until all that is on its way is answered, reports too. */
  async pause(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#loops);
    await vi.waitUntil(
      async () => {
        await this.#deliver();
        return this.#unsent.length === 0;
      },
      { timeout: 60_000 },
    );
  }

  /** Until each host was heard so many times more. */
  async rounds(count: number): Promise<void> {
    const goals = this.fleet.hosts.map((host) => ({ host, beats: host.beats + count }));
    const isDone = () => goals.every(({ host, beats }) => host.beats >= beats);
    await vi.waitUntil(isDone, { timeout: 60_000, interval: 20 });
  }

  /** What these jobs of the host have used; whether it was heard. If not, the next beat says it and more. */
  async beat(host: Host, jobs: readonly Job[], service = host.seed): Promise<boolean> {
    if (jobs.length === 0) return true;
    const { texts, said } = host.beat(this.#site.log, jobs);
    const sentAt = Date.now();
    const answer = await this.#say("/v1/heartbeats", { heartbeats: texts }, service);
    if (answer === undefined) return false;
    const heardAt = Date.now();
    const results = answer["results"] as (Heard | Unheard)[];
    const decisions = results.flatMap((result) => ("decisions" in result ? result.decisions : []));
    if (decisions.length !== said.length) {
      const what = JSON.stringify(results.map(({ code }) => code));
      this.#books.failures.push({ url: "heartbeats", what, sentAt, heardAt });
      return false;
    }
    for (const [i, decision] of decisions.entries()) {
      const [job, statement] = said[i] as [Job, Statement];
      statement.heardAt = heardAt;
      statement.kept = decision.source === "redis";
      this.#books.told.push({ decision, job, quarters: statement.quarters, sentAt, heardAt });
    }
    return true;
  }

  async #beatOf(host: Host): Promise<void> {
    if (await this.beat(host, speaking(host))) host.beats += 1;
  }

  /** What these namespaces have left, as one service has it. */
  async ask(namespaces: readonly string[], service: number): Promise<Decision[]> {
    const jobs = namespaces.map((namespace_id) => ({ job_id: NOBODY, namespace_id, ask: "go_on" }));
    return await this.#decide(jobs, service);
  }

  async #decide(jobs: readonly object[], service: number): Promise<Decision[]> {
    if (jobs.length === 0) return [];
    const sentAt = Date.now();
    const answer = await this.#say("/v1/decisions", { log: this.#site.log, jobs }, service);
    const heardAt = Date.now();
    const decisions = (answer?.["decisions"] ?? []) as Decision[];
    for (const decision of decisions) {
      this.#books.told.push({ decision, job: undefined, quarters: 0, sentAt, heardAt });
    }
    return decisions;
  }

  /** Some jobs end, and as many want to start in their place. */
  async #turnOver(): Promise<void> {
    const running = this.fleet.running().filter(({ silent, namespace, statements }) => {
      return !silent && statements.length > 0 && !this.fleet.isDoomed(namespace);
    });
    const ended: Job[] = [];
    for (let i = 0; i < ENDING && running.length > 0; i += 1) {
      this.#turn += 1;
      const job = running[(this.#turn * 7_919) % running.length];
      if (job === undefined || !job.host.jobs.delete(job)) continue;
      this.#unsent.push(job.host.report(this.#site.log, job));
      this.#pending.push(job.namespace);
      ended.push(job);
    }
    await Promise.all([this.#deliver(), this.#start()]);
    // A heartbeat of theirs was late: it comes after the report, to the service that never heard of the job.
    await Promise.all(ended.map((job) => this.beat(job.host, [job], job.host.seed + 1)));
  }

  /** The same bytes until there is an answer. */
  async #deliver(): Promise<void> {
    if (this.#unsent.length === 0) return;
    const reports = this.#unsent.splice(0, 500);
    const answer = await this.#say("/v1/reports", { reports }, this.#turn);
    const results = (answer?.["results"] ?? []) as { code: string; index?: string }[];
    for (const [i, jws] of reports.entries()) {
      const { code, index } = results[i] ?? {};
      if (code === "accepted" || code === "duplicate") this.#books.append(BigInt(index ?? 0));
      else this.#unsent.push(jws);
    }
  }

  async #start(): Promise<void> {
    const wanting = this.#pending.splice(0, 200);
    const jobs = wanting.map((namespace_id, i) => {
      return { job_id: String(500_000_000 + this.#turn * 200 + i), namespace_id, ask: "start" };
    });
    const decisions = await this.#decide(jobs, this.#turn);
    for (const [i, namespace] of wanting.entries()) {
      if (decisions[i]?.allowed) this.fleet.begin(namespace);
      else this.#pending.push(namespace);
    }
  }

  /** One more minute a month for one namespace, and a pack of one for another. */
  async #change(): Promise<void> {
    this.#version += 1;
    const source = { source: "test", source_version: String(this.#version) };
    const { namespaces } = this.fleet;
    const raised = namespaces[(this.#version * 13) % namespaces.length] ?? "";
    const bought = namespaces[(this.#version * 29) % namespaces.length] ?? "";
    const limit = this.fleet.limitOf(raised);
    if (limit !== undefined) {
      const minutes = Number(limit.monthly_minutes) + 1;
      await this.limit(raised, { ...limit, monthly_minutes: String(minutes) });
    }
    const pack = { namespace_id: bought, pack_id: `order ${this.#version}`, minutes: "1" };
    const json = { log: this.#site.log, ...pack, ...source };
    await this.#say("/v1/packs", json, this.#version);
  }

  /** @returns whether it is on the log */
  async limit(namespace: string, limit: object): Promise<boolean> {
    this.#version += 1;
    const source = { source: "test", source_version: String(this.#version) };
    const path = `/v1/quotas/${this.#site.log}/${namespace}`;
    const answer = await this.#say(path, { ...limit, ...source }, this.#version, "PUT");
    return answer !== undefined;
  }

  async #sample(): Promise<void> {
    this.#turn += 1;
    const { namespaces } = this.fleet;
    const asked = Array.from({ length: SAMPLED }, (_, i) => {
      return namespaces[(this.#turn * 31 + i * 7) % namespaces.length] ?? "";
    });
    await this.ask(asked, this.#turn);
  }

  /** To the service of this turn, or if that was killed to the other. Undefined where it failed. */
  async #say(
    path: string,
    json: object,
    turn: number,
    method = "POST",
  ): Promise<Record<string, unknown> | undefined> {
    const { services, token } = this.#site;
    const alive = services.filter(({ killedAt }) => killedAt === Number.POSITIVE_INFINITY);
    const service = alive[turn % alive.length];
    if (service === undefined) throw new Error("traffic: nobody is left");
    const sentAt = Date.now();
    const fail = (what: string): undefined => {
      this.#books.failures.push({ url: service.url, what, sentAt, heardAt: Date.now() });
    };
    try {
      const headers = { "content-type": "application/json", authorization: `Bearer ${token}` };
      const request = { method, headers, body: JSON.stringify(json) };
      const response = await fetch(service.url + path, request);
      const text = await response.text();
      return response.ok ? JSON.parse(text) : fail(`${path} ${response.status} ${text}`);
    } catch (error) {
      return fail(`${path} ${error}`);
    }
  }
}

function speaking({ jobs }: Host): Job[] {
  return [...jobs].filter(({ silent }) => !silent);
}
