/**
 * The one door to the log (DESIGN §5): whatever becomes an entry passes here. Commits are grouped per
 * log and process (lane.ts).
 *
 * Many processes append to one log. Each queues at the head row for one short READ COMMITTED
 * transaction and decides under that lock; what was judged before it at another control index is
 * judged again (held.ts).
 */
import { admit } from "../../core/admit.ts";
import { type Body, decodeEntry, GENESIS_PREV, type Kind } from "../../core/entry.ts";
import { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import { instantText } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { insertEntries, readGenesis } from "../../store/entries.ts";
import { type FirstKeys, insertFirstKeys } from "../../store/first-keys.ts";
import { createHead, lockCreation } from "../../store/heads.ts";
import { createMark } from "../../store/quota-marks.ts";
import { transact } from "../../store/transact.ts";
import { Chain } from "./chain.ts";
import { commitReports } from "./commit.ts";
import {
  commitEntry,
  commitTogether,
  type Make,
  type Receipt,
  type Together,
} from "./commit-entry.ts";
import { failureOf, spoken } from "./failure.ts";
import { type Committing, type Memory, readPrefix, remembered } from "./held.ts";
import { Lanes } from "./lane.ts";
import { commitArchived, type Replay } from "./replay.ts";
import type { Fit, Outcome } from "./settle.ts";

export interface Appender {
  /**
   * In the order of the verdicts. A report whose own data cannot be stored is answered `busy` alone.
   *
   * @throws Problem `busy`: nothing of this request is answered, and its repetition is safe;
   *   `log-behind`, `archive-unavailable`; `not-found` if there is no such log
   */
  reports(log: string, verdicts: readonly Fit[]): Promise<Outcome[]>;
  /** Any entry but a report's. @throws Problem as `admit` and `make` say, and as `reports` does */
  control<K extends Kind>(log: string, kind: K, make: Make<K>): Promise<Receipt>;
  /** Several entries that stand together or not at all. @throws Problem as `control` does */
  together<T>(log: string, make: Together<T>): Promise<T>;
  /**
   * The prefix as this process last read it, read on if that was before entry `atLeast`−1. It is the one
   * that commits go on with, and moves on with them: ask again rather than keep it.
   *
   * @throws Problem `not-found`, `busy`
   */
  prefix(log: string, atLeast?: bigint): Promise<Prefix>;
  /**
   * Entry 0 of a new log, which begins under these keys; with `mapping`, entry 1 beside it.
   *
   * @throws Problem `log-exists` if its instance has one; as `admit` says of the mapping
   */
  create(
    body: Body<"log">,
    log: string,
    first: FirstKeys,
    mapping?: Body<"role_mapping">,
  ): Promise<Receipt>;
  /**
   * Entries that the archive has and this database lacks, in one transaction: all that `work` takes,
   * or nothing. @throws RecoveryError; Problem `busy`
   */
  archived(log: string, work: (replay: Replay) => Promise<void>): Promise<void>;
  /** Refuses what comes from now on, and resolves when all that was taken is answered. */
  close(): Promise<void>;
}

export interface AppendOptions extends Committing {
  /** An error that its caller hears of as `busy` only. */
  failed?: (error: unknown) => void;
  /** After each commit of reports, with how long it took. */
  committed?: (batch: { reports: number; elapsedMs: number }) => void;
}

interface Request {
  verdicts: readonly Fit[];
  resolve: (outcomes: Outcome[]) => void;
  reject: (error: unknown) => void;
}

/** Reports that wait for their commit, or an entry by itself. */
type Turn = Request | ((memory: Memory) => Promise<void>);

/** One commit holds so many reports at most, unless one request alone has more. */
const BATCH_MAX = 500;
const LOGS_MAX = 1_000;

export function openAppender(options: AppendOptions): Appender {
  const lanes = new Lanes<Turn, Memory>({
    memory: (log) => ({ log }),
    perform: (memory, turns) => perform(options, memory, turns),
    sizeMax: BATCH_MAX,
    logsMax: LOGS_MAX,
  });
  let closed = false;

  async function inTurn<T>(enqueue: (resolve: (value: T) => void, reject: Reject) => void) {
    if (closed) throw new Problem("busy");
    return await new Promise<T>(enqueue);
  }

  function alone<T>(log: string, commit: (memory: Memory) => Promise<T>): Promise<T> {
    return inTurn<T>((resolve, reject) => {
      const item = (memory: Memory): Promise<void> =>
        commit(memory).then(resolve, (error: unknown) => {
          reject(said(options, error));
        });
      lanes.push(log, { kind: "alone", item });
    });
  }

  return {
    control: (log, kind, make) => alone(log, (memory) => commitEntry(options, memory, kind, make)),
    together: (log, make) => alone(log, (memory) => commitTogether(options, memory, make)),
    archived: (log, work) => alone(log, (memory) => commitArchived(options, memory, work)),
    prefix: async (log, atLeast = 0n) => {
      const memory = lanes.remembered(log);
      const prefix = memory && remembered(memory, atLeast);
      // In the log's turn: a commit must not meet a prefix that another is reading on.
      return prefix ?? (await alone(log, (memory) => readPrefix(options, memory, atLeast)));
    },
    reports: (log, verdicts) =>
      inTurn((resolve, reject) => {
        if (verdicts.length === 0) return resolve([]);
        const item = { verdicts, resolve, reject };
        lanes.push(log, { kind: "shared", size: verdicts.length, item });
      }),
    create: (body, log, first, mapping) =>
      inTurn((resolve, reject) => {
        transact(options.sql, (tx) => createLog(options, tx, { body, log, first, mapping })).then(
          resolve,
          (error: unknown) => {
            reject(said(options, error));
          },
        );
      }),
    close: async () => {
      closed = true;
      await lanes.idle();
    },
  };
}

type Reject = (error: unknown) => void;

async function perform(
  options: AppendOptions,
  memory: Memory,
  turns: readonly Turn[],
): Promise<void> {
  const [first] = turns;
  if (typeof first === "function") return await first(memory);
  const requests = turns.filter((turn) => typeof turn !== "function");
  const verdicts = requests.flatMap((request) => request.verdicts);
  const start = performance.now();
  try {
    const outcomes = await committed(options, memory, verdicts);
    options.committed?.({ reports: verdicts.length, elapsedMs: performance.now() - start });
    let from = 0;
    for (const { verdicts, resolve } of requests) {
      resolve(outcomes.slice(from, from + verdicts.length));
      from += verdicts.length;
    }
  } catch (error) {
    for (const { reject } of requests) reject(error);
  }
}

/** A batch that fails on one row's data is halved until the offender is alone. */
async function committed(
  options: AppendOptions,
  memory: Memory,
  verdicts: readonly Fit[],
): Promise<Outcome[]> {
  try {
    return await commitReports(options, memory, verdicts);
  } catch (error) {
    if (failureOf(error) !== "data") throw said(options, error);
    if (verdicts.length === 1) {
      options.failed?.(error);
      return [{ code: "busy" }];
    }
  }
  const half = verdicts.length >> 1;
  const before = await committed(options, memory, verdicts.slice(0, half));
  return [...before, ...(await committed(options, memory, verdicts.slice(half)))];
}

function said(options: AppendOptions, error: unknown): unknown {
  const answer = spoken(error);
  if (answer !== error) options.failed?.(error);
  return answer;
}

interface NewLog {
  body: Body<"log">;
  log: string;
  first: FirstKeys;
  mapping: Body<"role_mapping"> | undefined;
}

async function createLog(
  { clock, hash }: Committing,
  tx: Transaction,
  { body, log, first, mapping }: NewLog,
): Promise<Receipt> {
  // Before the look: two creations of one instance must not both find nothing.
  await lockCreation(tx);
  for (const { bytes, log: existing } of await readGenesis(tx)) {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string" || entry.kind !== "log") continue;
    if (entry.body.unique_id === body.unique_id) throw new Problem("log-exists", { log: existing });
  }
  const at = instantText(clock.now());
  const chain = new Chain(log, { size: 0n, leaf: GENESIS_PREV }, at, hash);
  const genesis = chain.append("log", body);
  const { index, leaf } = genesis.stored;
  if (mapping !== undefined) {
    admit(new Prefix(genesis.entry), "role_mapping", mapping, at);
    chain.append("role_mapping", mapping);
  }
  await insertEntries(tx, log, at, chain.entries);
  // In one transaction: whoever seals the log knows what it began under, in whatever order it holds keys.
  await insertFirstKeys(tx, log, first);
  await createMark(tx, log);
  await createHead(tx, log, { ...chain.tip, controlIndex: -1n });
  return { index, leaf, at, written: true };
}
