/**
 * Who read or changed what: a row for each request, committed before its answer. Rows of requests that come
 * together are written together, when the write before has returned.
 */
import { Problem } from "../../core/problem.ts";
import {
  type AccessRow,
  createAccessMark,
  insertAccess,
  markedLogs,
} from "../../store/access-log.ts";
import type { Sql } from "../../store/connect.ts";
import { readRoles, registerUses, type Use } from "../../store/principals.ts";
import { readNewest } from "../../store/registers.ts";
import { decodedAs } from "../usage/show.ts";
import { rolesOf } from "./principals.ts";

export interface AccessLog {
  /**
   * Resolves when the row is committed; `use`: who it was, for the register of principals.
   * @throws Problem `busy`: it is not written, and nothing may be answered
   */
  record(row: AccessRow, use: Use | undefined): Promise<void>;
  /** For the register alone; nobody waits for it. */
  used(use: Use): void;
  /** With which roles somebody ever used a log, whatever their token gives them now. */
  rolesEver(log: string, id: string): Promise<readonly string[]>;
  /** Resolves when all is written. */
  close(): Promise<void>;
}

interface Item {
  row: AccessRow | undefined;
  use: Use | undefined;
  resolve: () => void;
  reject: (error: unknown) => void;
}

/** Of one statement. */
const ROWS_MAX = 500;
/** Requests that wait for it. */
const WAITING_MAX = 5_000;
/** Of uses that were registered today already. */
const KNOWN_MAX = 50_000;

/** @param options.sql as writer */
export function openAccessLog(options: { sql: Sql; failed: (error: unknown) => void }): AccessLog {
  const { sql, failed } = options;
  /** Logs that have a mark. */
  const marked = new Set([""]);
  /** Log and principal to the day and the roles that are registered. */
  const registered = new Map<string, string>();
  const waiting: Item[] = [];
  let writing: Promise<void> | undefined;

  function add(item: Item): void {
    if (waiting.length >= WAITING_MAX) {
      item.reject(new Problem("busy"));
      return;
    }
    waiting.push(item);
    writing ??= writeAll().finally(() => {
      writing = undefined;
    });
  }

  async function writeAll(): Promise<void> {
    // A turn later: requests that were answered in one turn are one statement.
    await new Promise(setImmediate);
    while (waiting.length > 0) {
      const items = waiting.splice(0, ROWS_MAX);
      try {
        await write(items);
        for (const { resolve } of items) resolve();
      } catch (error) {
        failed(error);
        // Of another database nothing is known.
        marked.clear();
        marked.add("");
        for (const { reject } of items) reject(problemOf(error));
      }
    }
  }

  async function write(items: readonly Item[]): Promise<void> {
    const rows = items.flatMap(({ row }) => row ?? []);
    await mark(sql, marked, rows);
    const uses = newUses(items, registered);
    await Promise.all([
      rows.length > 0 &&
        insertAccess(
          sql,
          rows.map((row) => placed(row, marked)),
        ),
      uses.size > 0 && registerUses(sql, [...uses.values()]),
    ]);
    if (registered.size + uses.size > KNOWN_MAX) registered.clear();
    for (const [name, use] of uses) registered.set(name, stateOf(use));
  }

  return {
    record: (row, use) =>
      new Promise((resolve, reject) => {
        add({ row, use, resolve, reject });
      }),
    used: (use) => {
      if (registered.get(nameOf(use)) === stateOf(use)) return;
      const ignored = (): void => undefined;
      add({ row: undefined, use, resolve: ignored, reject: ignored });
    },
    rolesEver: async (log, id) => rolesOf(await readRoles(sql, { log, id })),
    close: async () => {
      await writing;
    },
  };
}

/** What is about a log that there is not, is about none. */
function placed(row: AccessRow, marked: ReadonlySet<string>): AccessRow {
  return marked.has(row.log) ? row : { ...row, log: "" };
}

/** Finds out which logs can be written about; one that has no mark yet gets it. */
async function mark(sql: Sql, marked: Set<string>, rows: readonly AccessRow[]): Promise<void> {
  const find = async (logs: readonly string[]): Promise<string[]> => {
    for (const log of await markedLogs(sql, logs)) marked.add(log);
    return logs.filter((log) => !marked.has(log));
  };
  const unknown = [...new Set(rows.map(({ log }) => log))].filter((log) => !marked.has(log));
  if (unknown.length === 0) return;
  const unmarked = await find(unknown);
  if (unmarked.length === 0) return;
  for (const log of unmarked) await createAccessMark(sql, log, await lastDigest(sql, log));
  await find(unmarked);
}

/** The day of the newest `access_digest`; of a log that came back from its archive there is one already. */
async function lastDigest(sql: Sql, log: string): Promise<string | undefined> {
  const newest = await readNewest(sql, log, "access_digest");
  return newest && decodedAs("access_digest", newest.bytes).body.day;
}

/** By name, each once with all its roles; those that are registered as such today are none. */
function newUses(
  items: readonly Item[],
  registered: ReadonlyMap<string, string>,
): Map<string, Use> {
  const uses = new Map<string, Use>();
  for (const { use } of items) {
    if (use === undefined || registered.get(nameOf(use)) === stateOf(use)) continue;
    const roles = rolesOf(uses.get(nameOf(use))?.roles ?? "");
    const all = new Set([...roles, ...rolesOf(use.roles)]);
    uses.set(nameOf(use), { ...use, roles: [...all].sort().join(",") });
  }
  return uses;
}

function nameOf({ log, id }: Use): string {
  return `${log} ${id}`;
}

function stateOf({ roles }: Use): string {
  return `${new Date().toISOString().slice(0, "YYYY-MM-DD".length)} ${roles}`;
}

function problemOf(error: unknown): Problem {
  const problem = new Problem("busy");
  problem.cause = error;
  return problem;
}
