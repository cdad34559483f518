/** Hosts whose jobs run, what they sign of them, and what the test itself knows of each job. */

import { TYP } from "../../../src/core/report.ts";
import { instantText } from "../../../src/core/unit.ts";
import { reported, sign } from "../../flow/door.ts";

export const NAMESPACES = 500;
export const JOBS_PER_NAMESPACE = 10;
export const HOSTS = 10;
/** Hosts that the jobs of one namespace run on. */
const HOSTS_PER_NAMESPACE = 2;
/** As many as fit a compact JWS. */
const JOBS_PER_JWS = 24;
const MINUTE_MS = 60_000;

/** Machine types of the card, and their factors in quarters: sums of what jobs use stay whole numbers. */
const MACHINES = [
  { machine_type: "small", quarters: 4 },
  { machine_type: "large", quarters: 12 },
  { machine_type: "trial", quarters: 1 },
] as const;

/** What a quarter of a compute-millisecond is in the units of amounts. */
export const QUARTER = 250_000n;

/** How much a job had used when its host said so; epoch milliseconds. */
export interface Statement {
  readonly quarters: number;
  readonly sentAt: number;
  /** Infinite until it is answered. */
  heardAt: number;
  /** Redis answered. */
  kept: boolean;
}

export class Job {
  readonly id: string;
  readonly namespace: string;
  readonly host: Host;
  readonly #bornAt: number;
  /** Rising, since what a host says is cumulative. */
  readonly statements: Statement[] = [];
  /** Its host is gone, and its report does not come. */
  silent = false;

  /** @param elapsedMs how long it has run already */
  constructor(id: string, namespace: string, host: Host, elapsedMs: number) {
    this.id = id;
    this.namespace = namespace;
    this.host = host;
    this.#bornAt = Date.now() - elapsedMs;
  }

  elapsedMs(now: number): number {
    return now - this.#bornAt;
  }
}

export class Host {
  readonly seed: number;
  readonly uuid: string;
  readonly machine: (typeof MACHINES)[number];
  readonly jobs = new Set<Job>();
  /** Whole beats that were answered, job by job. */
  beats = 0;
  #counter = 0;

  constructor(place: number) {
    this.seed = 100 + place;
    this.uuid = `00000000-0000-4000-8000-00000000000${place}`;
    this.machine = MACHINES[place % MACHINES.length] ?? MACHINES[0];
  }

  /** Of all jobs that it has something to say of, and what it said of each. */
  beat(log: string, jobs: readonly Job[]): { texts: string[]; said: [Job, Statement][] } {
    const sentAt = Date.now();
    const texts: string[] = [];
    const said: [Job, Statement][] = [];
    for (let i = 0; i < jobs.length; i += JOBS_PER_JWS) {
      const running = jobs.slice(i, i + JOBS_PER_JWS).map((job) => {
        const elapsed = job.elapsedMs(sentAt);
        const quarters = elapsed * this.machine.quarters;
        const statement = { quarters, sentAt, heardAt: Number.POSITIVE_INFINITY, kept: false };
        job.statements.push(statement);
        said.push([job, statement]);
        const { id, namespace: root_namespace_id } = job;
        return { elapsed_ms: String(elapsed), id, project_id: "50", root_namespace_id };
      });
      const runner = { system_id: "s_1", uuid: this.uuid };
      const issued_at = instantText(sentAt);
      texts.push(sign(this.seed, TYP.heartbeat, { issued_at, jobs: running, log, runner }));
    }
    return { texts, said };
  }

  /** The job has ended just now. */
  report(log: string, job: Job): string {
    this.#counter += 1;
    const now = Date.now();
    const elapsed = job.elapsedMs(now);
    return reported(this.seed, log, {
      counter: String(this.#counter),
      uuid: this.uuid,
      job: { id: job.id, root_namespace_id: job.namespace },
      usage: {
        duration_ms: String(elapsed),
        finished_at: instantText(now),
        started_at: instantText(now - elapsed),
      },
    });
  }
}

export interface Limit {
  monthly_minutes: string;
  beyond: "stop" | "bill";
  cap?: string;
  grace_minutes?: string;
}

/** Each tenth namespace has one of these; `undefined`: nobody sets it a limit. */
const LIMITS: readonly (Limit | undefined)[] = [
  { monthly_minutes: "10", beyond: "stop", grace_minutes: "0" },
  { monthly_minutes: "60", beyond: "stop", grace_minutes: "0" },
  undefined,
  { monthly_minutes: "20", beyond: "bill", cap: "60" },
  { monthly_minutes: "20", beyond: "bill" },
];
const AMPLE: Limit = { monthly_minutes: "10000", beyond: "stop" };

export class Fleet {
  readonly hosts = Array.from({ length: HOSTS }, (_, place) => new Host(place));
  readonly namespaces = Array.from({ length: NAMESPACES }, (_, i) => String(1_000 + i));
  /** All that ever ran, by namespace. */
  readonly jobs = new Map<string, Job[]>();
  #ids = 0;

  constructor() {
    for (let i = 0; i < NAMESPACES * JOBS_PER_NAMESPACE; i += 1) {
      // Of a namespace with ten minutes each job alone is beyond them.
      const elapsed = this.isDoomed(this.#namespaceAt(i)) ? 50 * MINUTE_MS : (i % 7) * MINUTE_MS;
      this.begin(this.#namespaceAt(i), elapsed);
    }
  }

  limitOf(namespace: string): Limit | undefined {
    const place = Number(namespace) % 10;
    return place < LIMITS.length ? LIMITS[place] : AMPLE;
  }

  /** What runs in it is beyond its quota from the first beat. */
  isDoomed(namespace: string): boolean {
    return this.limitOf(namespace) === LIMITS[0];
  }

  begin(namespace: string, elapsedMs = 0): Job {
    this.#ids += 1;
    const place = Number(namespace) + (this.#ids % HOSTS_PER_NAMESPACE);
    const host = this.hosts[place % HOSTS];
    if (host === undefined) throw new Error("fleet: no such host");
    const job = new Job(String(this.#ids), namespace, host, elapsedMs);
    host.jobs.add(job);
    const known = this.jobs.get(namespace) ?? [];
    this.jobs.set(namespace, known);
    known.push(job);
    return job;
  }

  running(): Job[] {
    return this.hosts.flatMap(({ jobs }) => [...jobs]);
  }

  #namespaceAt(i: number): string {
    return this.namespaces[i % NAMESPACES] ?? "";
  }
}
