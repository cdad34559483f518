/** A log whose namespaces come to their levels, and what they are told of it. */
import { randomBytes } from "node:crypto";
import { QuotaEvent } from "../../../src/core/quota/event.ts";
import { instantText } from "../../../src/core/unit.ts";
import { type Notifying, notify } from "../../../src/flow/quota/notify.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { createMark, logsToLookAt } from "../../../src/store/quota-marks.ts";
import type { TestRunner } from "../../builds.ts";
import { TestLedger } from "../../ledger.ts";

export const START = Date.UTC(2026, 10, 20, 12);
export const MINUTE_MS = 60_000n;
export const HOSTED = {
  uuid: "r-1",
  runner_id: "7",
  machine_type: "small",
  tracking: "hosted",
} as const;
export const OWN = { ...HOSTED, uuid: "r-2", runner_id: "8", tracking: "self_managed" } as const;

interface Use {
  runner?: TestRunner;
  /** Epoch milliseconds. */
  ended?: number;
}

const SALT = Buffer.alloc(16).toString("base64");

export const random = (bytes: number): Uint8Array => new Uint8Array(randomBytes(bytes));

export class QuotaLog extends TestLedger {
  readonly #agent;
  #job = 0;
  #version = 0;

  constructor(number: number, body: ConstructorParameters<typeof TestLedger>[2] = {}) {
    super(number.toString(16).padStart(32, "0"), START, body);
    this.card("hosted", { "*": "1" });
    this.card("self_managed", { "*": "1" });
    this.#agent = this.enrol(1, [HOSTED, OWN]);
  }

  /** Made as the one door makes a log: all that happens on it is news. */
  async create(sql: Sql): Promise<this> {
    await sql.begin(async (tx) => {
      await createMark(tx, this.log);
      await this.loadIn(tx);
    });
    return this;
  }

  limit(namespace: number, minutes: number, from?: string): void {
    this.#version += 1;
    this.append("quota", {
      approval: "",
      beyond: "stop",
      by: "p_test",
      cap: "",
      effective_from: from ?? new Date(this.now).toISOString(),
      grace_minutes: "1000",
      monthly_minutes: String(minutes),
      namespace_id: String(namespace),
      salt: SALT,
      source: "test",
      source_version: String(this.#version),
    });
  }

  pack(namespace: number, minutes: number): void {
    this.#version += 1;
    const month = `${new Date(this.now).toISOString().slice(0, 7)}-01`;
    this.append("pack", {
      approval: "",
      by: "p_test",
      expires_in: "2099-01-01",
      minutes: String(minutes),
      namespace_id: String(namespace),
      pack_id: `pack ${this.#version}`,
      purchased_in: month,
      salt: SALT,
      source: "test",
      source_version: "1",
    });
  }

  /** One build of so many milliseconds at factor 1, that ends now unless it is said. */
  use(namespace: number, ms: bigint, { runner = HOSTED, ended = this.now }: Use = {}): void {
    this.#job += 1;
    const finished = instantText(ended);
    this.report(this.#agent, { job: this.#job, runner, namespace, duration: ms, finished });
  }
}

/** All that one process has to tell now, of one log. */
export async function tell(
  sql: Sql,
  log: string,
  now: number,
  more: Partial<Notifying> = {},
): Promise<string[]> {
  const told: string[] = [];
  const notifying = { sql, clock: { now: () => now }, random, ...more };
  while ((await logsToLookAt(sql, now)).includes(log)) {
    const look = await notify(notifying, log);
    told.push(...look.told);
  }
  return told;
}

export interface Kept {
  namespace: string;
  number: string;
  id: string;
  state: string;
  event: QuotaEvent;
}

/** The outbox of a log, in the order of each namespace. */
export async function outboxOf(sql: Sql, log: string): Promise<Kept[]> {
  const rows = await sql<(Omit<Kept, "event"> & { body: string })[]>`
    select namespace_id::text as namespace, number::text, id, state, body
    from notifications
    where log = ${log}
    order by namespace_id, notifications.number`;
  return rows.map(({ body, ...row }) => ({ ...row, event: QuotaEvent.parse(JSON.parse(body)) }));
}

/** What a log's namespaces were told, as `namespace type level`. */
export async function toldOf(sql: Sql, log: string): Promise<string[]> {
  const kept = await outboxOf(sql, log);
  return kept.map(({ namespace, event }) => `${namespace} ${event.type} ${event.data.level}`);
}
