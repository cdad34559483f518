/** What tests of quota say to a service, in short. */
import type { Service } from "../../src/command/service.ts";
import type { Decision } from "../../src/flow/quota/decide.ts";
import type { Heard, Unheard } from "../../src/flow/quota/heartbeat.ts";
import { reported } from "../flow/door.ts";
import { heartbeatOf } from "./heartbeat.ts";
import { ask } from "./house.ts";

type At = Pick<Service, "url">;

/** Whose versions the limits and packs of all tests are. */
let version = 0;
let namespaces = 1_000;

export interface Limit {
  monthly_minutes: string;
  beyond?: "stop" | "bill";
  cap?: string;
  grace_minutes?: string;
  effective_from?: string;
}

export class Desk {
  readonly at: At;
  readonly log: string;
  readonly token: string;

  constructor(at: At, { log, token }: { log: string; token: string }) {
    this.at = at;
    this.log = log;
    this.token = token;
  }

  /** At another process. */
  moved(at: At): Desk {
    return new Desk(at, this);
  }

  /** One that nobody else uses, and its id. */
  async namespace(limit: Limit): Promise<string> {
    namespaces += 1;
    const name = String(namespaces);
    await this.limit(name, limit);
    return name;
  }

  async limit(namespace: string, limit: Limit): Promise<void> {
    version += 1;
    const json = { beyond: "stop", source: "test", source_version: String(version), ...limit };
    await this.#say(`PUT /v1/quotas/${this.log}/${namespace}`, json, 201);
  }

  async pack(namespace_id: string, minutes: string): Promise<void> {
    version += 1;
    const named = { log: this.log, namespace_id, pack_id: `order ${version}` };
    const json = { ...named, minutes, source: "test", source_version: String(version) };
    await this.#say("POST /v1/packs", json, 201);
  }

  /** A build of so many minutes goes on the log, by the key of seed 1. */
  async report(root_namespace_id: string, id: string, at: number): Promise<void> {
    version += 1;
    const [job, usage] = [{ id, root_namespace_id }, { duration_ms: minutes(at) }];
    const jose = reported(1, this.log, { counter: String(version), job, usage });
    const { status, text } = await ask(this.at, "POST /v1/reports", { jose });
    if (status !== 201) throw new Error(text);
  }

  /** One job of the namespace that has run so many minutes, by the key of seed 1. */
  async beat(root_namespace_id: string, id: string, at: number): Promise<Decision | undefined> {
    const job = { id, root_namespace_id, elapsed_ms: minutes(at) };
    return (await this.heard(heartbeatOf(1, this.log, [job])))[0];
  }

  async decide(jobs: readonly object[], more: object = {}): Promise<Decision[]> {
    const said = await this.#say("POST /v1/decisions", { log: this.log, jobs, ...more }, 200);
    return said["decisions"] as Decision[];
  }

  /** Of one namespace. */
  async start(namespace_id: string, ...ids: string[]): Promise<Decision[]> {
    return await this.decide(ids.map((job_id) => ({ job_id, namespace_id, ask: "start" })));
  }

  async neverRan(namespace_id: string, ...ids: string[]): Promise<void> {
    const jobs = ids.map((job_id) => ({ job_id, namespace_id }));
    await this.#say(`POST /v1/logs/${this.log}/never_ran`, { jobs }, 200);
  }

  async hear(...heartbeats: string[]): Promise<(Heard | Unheard)[]> {
    const said = await this.#say("POST /v1/heartbeats", { heartbeats }, 200);
    return said["results"] as (Heard | Unheard)[];
  }

  /** All decisions of heartbeats of which each was heard. */
  async heard(...heartbeats: string[]): Promise<Decision[]> {
    const results = await this.hear(...heartbeats);
    return results.flatMap((result) => {
      if (!("decisions" in result)) throw new Error(`not heard: ${result.code}`);
      return result.decisions;
    });
  }

  /** What the namespace has left beside all that is live, in minutes. */
  async remaining(namespace: string): Promise<string | undefined> {
    const [decision] = await this.decide([
      { job_id: "999999", namespace_id: namespace, ask: "go_on" },
    ]);
    return decision?.remaining_minutes;
  }

  async stops(namespace: string, after?: string): Promise<Record<string, unknown>> {
    const query = after === undefined ? "" : `?after=${after}`;
    const { token } = this;
    const path = `/v1/quotas/${this.log}/${namespace}/stops${query}`;
    return (await ask(this.at, `GET ${path}`, { token })).json;
  }

  async #say(route: string, json: object, status: number): Promise<Record<string, unknown>> {
    const answered = await ask(this.at, route, { token: this.token, json });
    if (answered.status !== status) throw new Error(`${answered.status} ${answered.text}`);
    return answered.json;
  }
}

export const minutes = (count: number): string => String(count * 60_000);
