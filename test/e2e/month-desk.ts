/** A service with a log under two persons' control, a host that reports to it, and a platform that saw it all. */
import { expect, vi } from "vitest";
import { decodeEntry, type EntryOf, type Kind } from "../../src/core/entry.ts";
import { instantText } from "../../src/core/unit.ts";
import type { ShownCondition } from "../../src/flow/month/show.ts";
import { reported, sign } from "../flow/door.ts";
import { FourEyes } from "../http/four-eyes.ts";
import { type Answered, ask, cardBody } from "../http/house.ts";
import type { Terms } from "./recount.ts";

const DAY_MS = 86_400_000;

export interface Build {
  job: string;
  namespace: string;
  ms: number;
  finished: string;
}

/** Builds that follow each other every six hours, of three namespaces in turn and of no round length. */
export function builds(from: number, to: number, begin: string): Build[] {
  return Array.from({ length: to - from }, (_, i) => {
    const job = from + i;
    const finished = instantText(Date.parse(begin) + (i + 1) * (DAY_MS / 4));
    const namespace = String(7 + (job % 3));
    return { job: String(job), namespace, ms: 45_001 + ((job * 7_919) % 90_000), finished };
  });
}

export class MonthDesk {
  readonly eyes: FourEyes;
  /** Of a system, which is no person. */
  readonly #platform: string;
  #counter = 0;

  private constructor(eyes: FourEyes, platform: string) {
    this.eyes = eyes;
    this.#platform = platform;
  }

  /** @param terms by namespace, for all months */
  static async open(since: string, terms: Readonly<Record<string, Terms>>): Promise<MonthDesk> {
    const eyes = await FourEyes.open();
    const desk = new MonthDesk(eyes, await eyes.issuer.bearer("3", ["platform"]));
    desk.at(since);
    eyes.log = await eyes.newLog("a month");
    await eyes.decided("rate_card", { ...cardBody(), runner_factors: { small: "2/3" } });
    await eyes.systems(["plan"]);
    await eyes.agent(1);
    const from = { source: "plan", source_version: "1" };
    const effective_from = "2026-01-01T00:00:00.000Z";
    for (const [namespace, { beyond, minutes, pack }] of Object.entries(terms)) {
      const limit = { monthly_minutes: String(minutes), beyond, effective_from, ...from };
      await desk.say(`PUT /v1/quotas/${eyes.log}/${namespace}`, limit);
      if (pack === undefined) continue;
      const months = { purchased_in: pack.month, expires_in: pack.month };
      const bought = { namespace_id: namespace, pack_id: "p", minutes: String(pack.minutes) };
      await desk.say("POST /v1/packs", { log: eyes.log, ...bought, ...months, ...from });
    }
    return desk;
  }

  get log(): string {
    return this.eyes.log;
  }

  at(instant: string): void {
    this.eyes.house.clock.time = Date.parse(instant);
  }

  async close(): Promise<void> {
    await this.eyes.house.close();
  }

  /** By the system. */
  async say(route: string, json: object): Promise<void> {
    const { status, text } = await ask(this.eyes.house, route, { token: this.#platform, json });
    expect([route, status, text]).toEqual([
      route,
      expect.toBeOneOf([200, 201]),
      expect.any(String),
    ]);
  }

  /** What is shown to whoever approves. */
  async show(path: string): Promise<Answered> {
    return await ask(this.eyes.house, `GET ${path}`, { token: this.eyes.approver });
  }

  /** The code of each answer. */
  async report(...told: Build[]): Promise<string[]> {
    const json = { reports: told.map((build) => this.#sign(build)) };
    const { json: answer } = await ask(this.eyes.house, "POST /v1/reports", { json });
    return (answer["results"] as { code: string }[]).map(({ code }) => code);
  }

  #sign({ finished, job: id, ms, namespace }: Build): string {
    this.#counter += 1;
    const started_at = instantText(Date.parse(finished) - ms);
    const usage = { duration_ms: String(ms), finished_at: finished, started_at };
    const job = { id, root_namespace_id: namespace };
    return reported(1, this.log, { counter: String(this.#counter), job, usage });
  }

  /** The platform's own list, and up to where it is whole. */
  async population(seen: readonly Build[], to?: string): Promise<void> {
    const jobs = seen.map(({ finished, job, ms, namespace }) => ({
      ...{ job_id: job, runner_id: "700", project_id: "50", namespace_id: namespace },
      ...{ status: "success", finished_at: finished, duration: String(ms / 1_000) },
      started_at: instantText(Date.parse(finished) - ms),
    }));
    const covered = to === undefined ? {} : { covered: [{ runner_id: "700", to }] };
    await this.say(`POST /v1/logs/${this.log}/platform_jobs`, { jobs, ...covered });
    if (to === undefined) return;
    const month = `${instantText(Date.parse(to) - 1).slice(0, 7)}-01`;
    await this.matched(month);
  }

  /** What the platform saw by now was held against what was reported, which goes on beside requests. */
  async matched(month: string): Promise<void> {
    await vi.waitUntil(() => this.#isMatched(month), { timeout: 20_000, interval: 200 });
  }

  async #isMatched(month: string): Promise<boolean> {
    const { text } = await this.show(`/v1/months/${this.log}/${month}`);
    const { preconditions } = JSON.parse(text) as { preconditions: ShownCondition[] };
    return preconditions.some(({ code, holds }) => code === "matching" && holds);
  }

  async attest(): Promise<void> {
    const marks = { clock_offset_ms: "0", files: [], malformed: "0", rejected: "0", spool: "0" };
    const issued_at = instantText(this.eyes.house.clock.time);
    const payload = { ...marks, counter: String(this.#counter), issued_at, log: this.log };
    const jose = sign(1, "attestation-v1+jws", payload);
    const { status } = await ask(this.eyes.house, "POST /v1/attestations", { jose });
    expect(status).toBe(201);
  }

  async propose(month: string): Promise<Answered> {
    return await this.eyes.propose({ action: "month_closing", content: { month } });
  }

  /**
   * What keeps the month open, by the refusal's own words; nothing: it is proposed now. Matching goes on beside
   * requests, and begins again with what is decided: of an answer that misses it another one is waited for.
   */
  async missing(month: string): Promise<string[]> {
    const settled = async (): Promise<string[] | undefined> => {
      const { json, status } = await this.propose(month);
      if (status === 201) return [];
      const listed = (json["missing"] ?? [json["code"]]) as string[];
      const codes = listed.map((text) => text.replace(/:.*/, ""));
      return codes.includes("matching") ? undefined : codes;
    };
    return await vi.waitUntil(settled, { timeout: 20_000, interval: 200 });
  }

  /** Asked for beside the loop that closes it anyway, so that a month that stays open says why. */
  async statement(month: string): Promise<string> {
    const { eyes, log } = this;
    const closed = async (): Promise<string> => {
      const path = `POST /v1/months/${log}/${month}/finish`;
      const asked = await ask(eyes.house, path, { token: eyes.proposer });
      const { status, text } = await this.show(`/v1/months/${log}/${month}/statement`);
      if (status !== 200) throw new Error(`not closed: ${asked.text}`);
      return text;
    };
    return await vi.waitFor(closed, { timeout: 20_000, interval: 500 });
  }

  /** Of a kind, while others write. */
  async written<K extends Kind>(kind: K): Promise<EntryOf<K>[]> {
    return (await this.bytes()).flatMap((bytes) => {
      const entry = decodeEntry(bytes);
      return typeof entry !== "string" && entry.kind === kind ? [entry as EntryOf<K>] : [];
    });
  }

  async bytes(): Promise<Uint8Array[]> {
    const rows = await this.eyes.house.database.reader<{ bytes: Uint8Array }[]>`
      select bytes from entries where log = ${this.log} order by index`;
    return rows.map(({ bytes }) => bytes);
  }
}
