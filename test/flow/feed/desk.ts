/** Logs with builds of two months, and consumers that say what they have of them. */
import { expect } from "vitest";
import type { Stated } from "../../../src/core/feed/acknowledgement.ts";
import { check } from "../../../src/flow/check/check.ts";
import type { Finding } from "../../../src/flow/check/event.ts";
import { type Acknowledged, acknowledge } from "../../../src/flow/feed/acknowledge.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { readOpenBreaks } from "../../../src/store/breaks.ts";
import { CARD } from "../../core/history.ts";
import { type Door, entriesOf, type House, newAgent, newLog, reported, sha256 } from "../door.ts";
import { sealerOn } from "../restored.ts";

export const [OCTOBER, NOVEMBER] = ["2026-10-01", "2026-11-01"] as const;

export interface Fed {
  log: string;
  /** All of it is sealed. */
  size: bigint;
}

export function month(billing_month: string, events: number, compute_ms: string): Stated {
  return { billing_month, events: String(events), compute_ms };
}

const FIRST = month(OCTOBER, 1, "60000.000000");
export const november = (events: number, compute_ms: string): Stated[] => [
  FIRST,
  month(NOVEMBER, events, compute_ms),
];
/** Of what `fedLog` has. */
export const RIGHT = november(2, "120000.000000");
/** One event of November has not come. */
export const SHORT = november(1, "60000.000000");

export class FeedDesk {
  readonly house: House;
  readonly door: Door;
  #counter = 0;

  constructor(house: House) {
    this.house = house;
    this.door = house.open();
  }

  /** Two builds of November and one of October. */
  async fedLog(unique_id: string, more: Parameters<typeof newLog>[2] = {}): Promise<Fed> {
    const log = await newLog(this.door, unique_id, more);
    await newAgent(this.door, log, 1);
    await this.build(log, "2026-10-20", "2026-11-01", "2026-11-10");
    return { log, size: await this.sealed(log) };
  }

  /** A minute each, that ended on these days. */
  async build(log: string, ...days: string[]): Promise<void> {
    const texts = days.map((day) => {
      this.#counter += 1;
      const times = { finished_at: `${day}T12:00:00.000Z`, started_at: `${day}T11:59:00.000Z` };
      return reported(1, log, {
        counter: String(this.#counter),
        job: { id: String(this.#counter) },
        usage: { duration_ms: "60000", ...times },
      });
    });
    const { results } = await this.door.submit(...texts);
    expect(results.map(({ code }) => code)).toEqual(days.map(() => "accepted"));
  }

  async sealed(log: string): Promise<bigint> {
    await seal({ ...sealerOn(this.house.database.writer, this.house.archive), log });
    const [row] = await this.house.database.reader<[{ size: bigint }]>`
      select size from seals where log = ${log}`;
    return row.size;
  }

  async ack(
    { log, size }: Fed,
    months: readonly Stated[],
    {
      by = this.door,
      consumer = "portal",
      up_to = size,
      principal = "p_portal",
      isPerson = false,
    } = {},
  ): Promise<Acknowledged> {
    const input = { consumer, months: [...months], up_to: String(up_to) };
    const archive = folderArchive(this.house.archive);
    const opening = { ...by, archive, sql: this.house.database.writer, hash: sha256 };
    return await acknowledge(opening, { log, by: principal, isPerson }, input);
  }

  entries({ log }: Fed) {
    return entriesOf(this.house.database.reader, log);
  }

  async open({ log }: Fed): Promise<bigint[]> {
    const found = await readOpenBreaks(this.house.database.reader, log, 2n ** 62n);
    return found.map(({ index }) => index);
  }

  /** Both persons in one, where the log needs no second. */
  async resolve({ log }: Fed, index: bigint, outcome: "accepted" | "corrected"): Promise<void> {
    const why = { evidence: "", reason: "looked_at", ticket: "OPS-1" };
    const body = {
      approval: "",
      break: String(index),
      by: "p_f",
      outcome,
      salt: CARD.salt,
      ...why,
    };
    await this.door.appender.control(log, "break_resolved", () => body);
  }

  /** Of all logs, by log. */
  async findings(): Promise<Map<string, Finding[]>> {
    const found = new Map<string, Finding[]>();
    for await (const event of check({ sql: this.house.database.reader }, { hash: sha256 })) {
      if (event.kind === "finding") found.set(event.log, [...(found.get(event.log) ?? []), event]);
    }
    return found;
  }
}
