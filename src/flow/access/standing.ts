/**
 * Each process' copy of what the logs say about roles, and of who is barred: read again when somebody asks and
 * it is older than a few seconds. While the database is away the copy stays as it is, so that nobody holds more
 * than they did; before it was ever read, nobody holds anything.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { MappedRole } from "../../core/control.ts";
import { Problem } from "../../core/problem.ts";
import { encodeHex } from "../../core/text.ts";
import type { Sql } from "../../store/connect.ts";
import { readBarred } from "../../store/principals.ts";
import { mappingBytes, newestMappings } from "../../store/role-mappings.ts";
import { decodedAs } from "../usage/show.ts";
import { type Standing, standingOf } from "./mapping.ts";

export interface Standings {
  /** @throws Problem `busy` before the first read */
  current(): Standing | Promise<Standing>;
  /** Reads now: what was committed before this was called counts from when it resolves. */
  renew(): Promise<void>;
}

/** From here on it is read again while the old copy still answers … */
const RENEW_AFTER_MS = 2_000;
/** … and from here on a request waits for that: with it, within 5 s everybody knows. */
const WAIT_AFTER_MS = 4_000;
/** A database that does not answer holds a request up for so long, and the next ones for this long not. */
const WAIT_MS_MAX = 1_000;

/** The mapping of a log, and which entry it is from. */
interface Kept {
  readonly version: string;
  readonly grants: readonly MappedRole[];
}

/** @param options.sql as writer: a replica may be behind */
export function openStandings(options: {
  sql: Sql;
  failed: (error: unknown) => void;
  /** Milliseconds that only go forward. */
  now?: () => number;
}): Standings {
  const { sql, failed, now = () => performance.now() } = options;
  let kept: ReadonlyMap<string, Kept> = new Map();
  let barredText = "";
  let known: { standing: Standing; readAt: number } | undefined;
  let reading: Promise<void> | undefined;
  let patientFrom = Number.NEGATIVE_INFINITY;

  async function read(): Promise<void> {
    const readAt = now();
    const [mappings, barred] = await Promise.all([readMappings(sql, kept), readBarred(sql)]);
    const text = JSON.stringify([...barred].map(([id, logs]) => [id, [...logs].sort()]));
    const isSame = known !== undefined && mappings === kept && text === barredText;
    kept = mappings;
    barredText = text;
    const standing = isSame && known ? known.standing : standingOf(grantsOf(mappings), barred);
    known = { standing, readAt };
  }

  /** One read at a time. */
  function start(): Promise<void> {
    reading ??= read()
      .catch(failed)
      .finally(() => {
        reading = undefined;
      });
    return reading;
  }

  async function waited(): Promise<Standing> {
    const abort = new AbortController();
    const { signal } = abort;
    const limit = delay(WAIT_MS_MAX, undefined, { signal }).catch(() => undefined);
    const before = known;
    await Promise.race([start(), limit]);
    abort.abort();
    if (known === before) patientFrom = now() + WAIT_MS_MAX;
    if (known === undefined) throw new Problem("busy");
    return known.standing;
  }

  return {
    current: () => {
      const at = now();
      const age = known === undefined ? Number.POSITIVE_INFINITY : at - known.readAt;
      if (known === undefined || (age >= WAIT_AFTER_MS && at >= patientFrom)) return waited();
      if (age >= RENEW_AFTER_MS) void start();
      return known.standing;
    },
    renew: async () => {
      // What is being read may have begun before what the caller has written.
      await reading;
      await start();
    },
  };
}

/** The same object where nothing has changed. */
async function readMappings(
  sql: Sql,
  kept: ReadonlyMap<string, Kept>,
): Promise<ReadonlyMap<string, Kept>> {
  const newest = await newestMappings(sql);
  const versions = new Map(
    newest.map(({ log, index, leaf }) => [log, `${index} ${encodeHex(leaf)}`]),
  );
  const changed = newest.filter(({ log }) => kept.get(log)?.version !== versions.get(log));
  if (changed.length === 0 && kept.size === newest.length) return kept;
  const next = new Map([...kept].filter(([log]) => versions.has(log)));
  for (const { log, bytes } of await mappingBytes(sql, changed)) {
    const version = versions.get(log) ?? "";
    next.set(log, { version, grants: decodedAs("role_mapping", bytes).body.grants });
  }
  return next;
}

function grantsOf(kept: ReadonlyMap<string, Kept>): Map<string, readonly MappedRole[]> {
  return new Map([...kept].map(([log, { grants }]) => [log, grants]));
}
