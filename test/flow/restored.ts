/** Logs with a little of everything in one database, and a second one that is restored from their archive. */
import { expect } from "vitest";
import { check } from "../../src/flow/check/check.ts";
import { openAppender } from "../../src/flow/log/append.ts";
import { openGuard } from "../../src/flow/log/guard.ts";
import { type Recovering, recover } from "../../src/flow/log/recover.ts";
import type { Sealer } from "../../src/flow/log/seal.ts";
import { verifySignature } from "../../src/flow/report/signature.ts";
import type { Archive } from "../../src/store/archive.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import type { Sql } from "../../src/store/connect.ts";
import { CARD } from "../core/history.ts";
import type { FreshDatabase } from "../postgres.ts";
import { type Door, newAgent, newLog, reported, sha256, signerFor, vkeyOf } from "./door.ts";

/** A second later each time it is asked: whoever was refused looks again. */
let time = Date.UTC(2026, 10, 20, 12, 0, 1);
const clock = {
  now: () => {
    time += 1_000;
    return time;
  },
};

type At = Archive | string;

function opened(archive: At): Archive {
  return typeof archive === "string" ? folderArchive(archive) : archive;
}

export function sealerOn(sql: Sql, at: At): Sealer & { hash: typeof sha256 } {
  const archive = opened(at);
  const hash = sha256;
  const guard = openGuard({ archive, signerFor, clock, hash });
  return { sql, archive, guard, signerFor, clock, hash };
}

/** All that one process restores a log with. */
export function recoveringOn(sql: Sql, at: At, log: string): Recovering {
  const { archive, guard, hash } = sealerOn(sql, at);
  const random = (): never => {
    throw new Error("nothing of a replay is made up");
  };
  const appender = openAppender({ sql, clock, random, hash, guard });
  return { sql, archive, log, hash, signerFor, guard, appender, witnesses: [] };
}

export async function restore(db: FreshDatabase, archive: At, log: string) {
  return await recover(recoveringOn(db.writer, archive, log));
}

/** Reports of all outcomes, `count` of the accepted kind among them, in commits of a hundred. */
export async function fill(door: Door, log: string, seed: number, count: number, from = 0) {
  const texts = Array.from({ length: count }, (_, i) => {
    const counter = String(2 * (from + i) + 1);
    return reported(seed, log, { counter, job: { id: String(from + i) } });
  });
  for (let start = 0; start < texts.length; start += 100) {
    await door.submit(...texts.slice(start, start + 100));
  }
  const usage = { duration_ms: "5" };
  const others = [
    reported(seed, log, { counter: String(2 * from + 2), job: { id: String(from) } }),
    reported(seed, log, { counter: String(2 * from + 4), job: { id: String(from) }, usage }),
    reported(seed, log, { counter: String(2 * from + 4), job: { id: String(from + 1) } }),
    reported(seed, log, { counter: String(2 * from + 6), uuid: "elsewhere" }),
  ];
  await door.submit(...others);
  return [...texts, ...others];
}

/** A log with a card and an agent. */
export async function begun(door: Door, unique_id: string, seed: number): Promise<string> {
  const log = await newLog(door, unique_id);
  await newAgent(door, log, seed);
  const effective_from = "2026-12-01T00:00:00.000Z";
  await door.appender.control(log, "rate_card", () => ({ ...CARD, effective_from }));
  return log;
}

const TABLES = ["entries", "heads", "jobs", "reports", "keys", "seals"] as const;

/**
 * Every column of every row; of checkpoints all but when they were sealed, which no archive says. A row is one text:
 * to compare it byte by byte, as objects are, takes longer than all the rest of a recovery's tests.
 */
export async function tablesOf({ superuser: sql }: FreshDatabase, log: string): Promise<object> {
  const tables: Record<string, object[]> = {};
  for (const table of TABLES) {
    tables[table] = await sql`
      select t::text as text from ${sql(table)} as t where log = ${log} order by t`;
  }
  tables["checkpoints"] = await sql`
    select size, root::text, note from checkpoints where log = ${log} order by size`;
  return tables;
}

/** What `minutebook check` says of the database. */
export async function expectProven({ reader: sql }: FreshDatabase, logs = 1): Promise<void> {
  const vkeys = (log: string) => [vkeyOf(log)];
  const notary = { verify: verifySignature, vkeys };
  const findings: object[] = [];
  for await (const event of check({ sql }, { hash: sha256, notary })) {
    if (event.kind === "finding") findings.push(event);
    if (event.kind === "summary") expect(event).toMatchObject({ exit: 0, logs });
  }
  expect(findings).toEqual([]);
}
