/** Two services over one database and one Redis, with all the traffic, and what is done when it goes wrong. */
import { expect, vi } from "vitest";
import type { Decision } from "../../../src/flow/quota/decide.ts";
import { newAgent, newLogOn } from "../../http/house.ts";
import { type Site as Ground, openSite, serve } from "../process.ts";
import { Books, type Failure, type Fault } from "./books.ts";
import { broken, isExact } from "./checks.ts";
import { Fleet, type Job } from "./fleet.ts";
import { Recount } from "./recount.ts";
import { type Running, type Site, Traffic } from "./traffic.ts";

/** Requests at once while the log is furnished. */
const ABREAST = 16;
/** A silent job in each of so many namespaces. */
const SILENT_EVERY = 5;
/** A round of the reconciler comes within this, whatever the machine is busy with. */
const RECONCILED_MS = 45_000;
const SHOWN_MAX = 5;

export class Chaos {
  readonly ground: Ground;
  readonly traffic: Traffic;
  readonly books: Books;
  readonly #site: Site;
  readonly #fleet: Fleet;
  readonly #recount = new Recount();
  readonly #killed: Running[] = [];
  #environment: Record<string, string>;

  private constructor(ground: Ground, site: Site, environment: Record<string, string>) {
    this.ground = ground;
    this.#site = site;
    this.#environment = environment;
    this.#fleet = new Fleet();
    this.books = new Books();
    this.traffic = new Traffic(site, this.#fleet, this.books);
  }

  /** @param redis where the services find it: variables of their environment */
  static async open(redis: Record<string, string>): Promise<Chaos> {
    const ground = await openSite();
    const environment = { ...ground.environment, ...redis };
    const services = await Promise.all([started(environment), started(environment)]);
    const [first] = services;
    const { token } = ground;
    const log = await newLogOn(first, token, "chaos");
    const chaos = new Chaos(ground, { log, token, services }, environment);
    for (const { machine, seed, uuid } of chaos.#fleet.hosts) {
      const { machine_type } = machine;
      await newAgent(first, log, seed, { uuid, machine_type, runner_id: String(seed) }, token);
    }
    const left = chaos.#fleet.namespaces.values();
    const lanes = Array.from({ length: ABREAST }, async () => {
      for (const namespace of left) {
        const limit = chaos.#fleet.limitOf(namespace);
        // All at once is too much now and then, which is answered so.
        while (limit !== undefined && !(await chaos.traffic.limit(namespace, limit)));
      }
    });
    await Promise.all(lanes);
    return chaos;
  }

  async close(): Promise<void> {
    const alive = this.#site.services.filter(
      ({ killedAt }) => killedAt === Number.POSITIVE_INFINITY,
    );
    await Promise.all(alive.map(({ end }) => end("SIGKILL")));
    await this.ground.remove();
  }

  /** The same services over another Redis. */
  async moveTo(redis: Record<string, string>): Promise<void> {
    this.#environment = { ...this.ground.environment, ...redis };
    const { services } = this.#site;
    await Promise.all(services.splice(0).map(({ end }) => end("SIGTERM")));
    services.push(...(await Promise.all([started(this.#environment), started(this.#environment)])));
  }

  /** Traffic flows before, meanwhile and after; then all is quiet. What was wrong has ended when `fault` has. */
  async during(fault: () => Promise<void>): Promise<void> {
    Object.assign(this.books, { told: [], failures: [] });
    await this.#over(this.books.begin());
    await this.#heard(this.#silent());
    this.traffic.run();
    await this.traffic.rounds(1);
    const begun = this.books.begin();
    await fault();
    await this.#over(begun);
    await this.traffic.rounds(1);
    await this.traffic.pause();
    await this.#heard(this.#fleet.running().filter(({ silent }) => !silent));
  }

  /** Both services ask Redis again, whatever the namespace. */
  async #over(fault: Fault): Promise<void> {
    await Promise.all([this.#look(0), this.#look(1)]);
    fault.overAt = Date.now();
  }

  /** Their hosts say once more how long these have run, until Redis has it. */
  async #heard(jobs: readonly Job[]): Promise<void> {
    const from = Date.now();
    await vi.waitUntil(
      async () => {
        const left = jobs.filter(({ statements }) => {
          const last = statements.at(-1);
          return last === undefined || last.sentAt < from || !last.kept;
        });
        const beats = this.#fleet.hosts.map((host) => {
          return this.traffic.beat(
            host,
            left.filter((job) => job.host === host),
          );
        });
        await Promise.all(beats);
        return left.length === 0;
      },
      { timeout: 60_000 },
    );
  }

  /** Whose reports never come; they speak once in each scenario, and no more. */
  #silent(): Job[] {
    const some = this.#fleet.namespaces.filter((_, i) => i % SILENT_EVERY === 0);
    return some.flatMap((namespace) => {
      const [first] = this.#fleet.jobs.get(namespace) ?? [];
      if (first === undefined) return [];
      first.silent = true;
      return [first];
    });
  }

  /** What is left in each namespace by one service, where all of it is from Redis. */
  async #look(service: number): Promise<Decision[]> {
    return await vi.waitUntil(
      async () => {
        const { namespaces } = this.#fleet;
        const decisions = await this.traffic.ask(namespaces, service);
        const kept = decisions.filter(({ source }) => source === "redis");
        return kept.length === namespaces.length && kept;
      },
      { timeout: 60_000 },
    );
  }

  /** Namespaces whose live usage is not what the hosts have said, in either service. */
  async #inexact(): Promise<Decision[]> {
    const seen = [...(await this.#look(0)), ...(await this.#look(1))];
    await this.#recount.readOn(this.ground.database.reader, this.#site.log);
    return seen.filter((decision) => !isExact(decision, this.#fleet, this.#recount));
  }

  /**
   * Nothing is lost and nothing doubled: at once where each job was heard after the fault; and where one was
   * not, after a round of the reconciler.
   */
  async expectWhole(): Promise<void> {
    const silent = new Set(this.#silent().map(({ namespace }) => namespace));
    const inexact = await this.#inexact();
    expect(inexact.filter(({ namespace_id }) => !silent.has(namespace_id))).toEqual([]);
    const expectNone = async () => expect(await this.#inexact()).toEqual([]);
    await vi.waitFor(expectNone, { timeout: RECONCILED_MS, interval: 500 });
  }

  /** Of everything that was told since `during` began. @returns how many of it were what */
  async expectSound(): Promise<{ beats: number; stopped: number; alone: number }> {
    await this.#recount.readOn(this.ground.database.reader, this.#site.log);
    const { told } = this.books;
    const faults = broken(this.books, this.#fleet, this.#recount);
    expect({ count: faults.length, some: faults.slice(0, SHOWN_MAX) }).toEqual({
      count: 0,
      some: [],
    });
    const failures = this.books.failures.filter((failure) => !this.#isExcused(failure));
    expect(failures.slice(0, SHOWN_MAX)).toEqual([]);
    return {
      beats: told.filter(({ job }) => job !== undefined).length,
      stopped: told.filter(({ job, decision }) => job && decision.job_status === "failed").length,
      alone: told.filter(({ decision }) => decision.source === "process").length,
    };
  }

  async killService(): Promise<void> {
    const [killed] = this.#site.services;
    if (killed === undefined) throw new Error("chaos: no service");
    killed.killedAt = Date.now();
    this.#killed.push(killed);
    await killed.end("SIGKILL");
    await this.traffic.rounds(1);
    this.#site.services[0] = await started(this.#environment);
  }

  /** It was on its way when the process that it was sent to was killed. */
  #isExcused({ heardAt, sentAt, url }: Failure): boolean {
    return this.#killed.some(({ killedAt, url: at }) => {
      return at === url && sentAt <= killedAt && killedAt <= heardAt;
    });
  }
}

async function started(environment: Record<string, string>): Promise<Running> {
  return { ...(await serve(environment)), killedAt: Number.POSITIVE_INFINITY };
}
