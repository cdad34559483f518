/**
 * The ledger's figures in this process (DESIGN §9): read when somebody asks, kept up with what is committed
 * while anybody does, bounded, and never without saying as of which entry and how old.
 */
import { Problem } from "../../core/problem.ts";
import type { NamespaceKey } from "../../core/quota/live.ts";
import type { Sql } from "../../store/connect.ts";
import { readHeads } from "../../store/heads.ts";
import type { Clock } from "../clock.ts";
import { spoken } from "../log/failure.ts";
import { Lanes } from "../log/lane.ts";
import { snapshot } from "../usage/show.ts";
import { type Held, heldAlone, LogCopy } from "./copy.ts";
import { readFacts } from "./facts.ts";
import { glance } from "./glance.ts";
import { Lookups } from "./lookups.ts";
import { Recency } from "./recency.ts";
import { readRevoked } from "./revoked.ts";

/** How new what is held has to be; epoch milliseconds where it is a time. */
export interface Wants {
  asOf?: bigint;
  readSince?: number;
}

export interface Ledger {
  /** What `hold` would give at once, from memory; undefined: it would wait, or throw. */
  known(key: NamespaceKey, wants?: Wants): Held | undefined;
  /**
   * From memory where that is new enough, else read. Older than wanted it can be for two reasons, which its
   * `readAt` tells apart: the log is shorter than that, or the database is away and this is what is known.
   *
   * @throws Problem `not-found`; `busy`: nothing is known, and nothing to be had
   */
  hold(key: NamespaceKey, wants?: Wants): Promise<Held>;
  /** Straight from the database, past all memory. @throws Problem `not-found`, `busy` */
  read(log: string, namespaces: readonly string[]): Promise<Reading>;
  /** Index of the hosted usage of those jobs that have one. @throws Problem `busy` */
  onLog(log: string, jobs: readonly string[]): Promise<Map<string, bigint>>;
  /** Index of the `key` entry of each key that was revoked. @throws Problem `busy` */
  revoked(log: string): Promise<ReadonlySet<bigint>>;
  /** What memory holds. */
  loaded(): { namespaces: number; logs: number };
  /** Asks no more, and resolves when nothing is asked any more. */
  close(): Promise<void>;
}

export interface Reading {
  asOf: bigint;
  readAt: number;
  held: Map<string, Held>;
}

export interface LedgerOptions {
  /**
   * On which what is committed is seen at once: a replica that lags looks like a log that has lost its end,
   * and one of several like a failover at each turn.
   */
  sql: Sql;
  clock: Clock;
  /** An error after which what is known goes on being told, with its age. */
  failed: (error: unknown) => void;
  namespacesMax?: number;
  pollMs?: number;
}

/** Who waits for a namespace, or for whatever is loaded to be as new as the log. */
type Waiter = { reject: (error: unknown) => void } & (
  | { namespace: string; resolve: (held: Held) => void }
  | { namespace?: never; resolve: () => void }
);

/** One log that is asked for. */
interface Desk {
  readonly copy: LogCopy;
  /** The last read failed: until one goes through, what is known is told at once. */
  failing: boolean;
  askedAt: number;
  /** Who waits, of its own and of polls. */
  waiting: number;
}

const NAMESPACES_MAX = 10_000;
const POLL_MS = 200;
/** After a poll that failed; and polls take a fifth of the time at most, however many logs there are. */
const RETRY_MS = 1_000;
const REST_FACTOR = 4;
/** A log that nobody asks for is forgotten: what is kept must be worth its poll. */
const IDLE_MS = 60_000;
/** Namespaces in one read. */
const WANTED_MAX = 500;
/** Logs whose queues are kept while nobody waits. */
const LOGS_MAX = 1_000;
/** Logs that are read on at once by a poll: connections are for those who ask, too. */
const ABREAST = 4;

export function openLedger(options: LedgerOptions): Ledger {
  return new ProcessLedger(options);
}

class ProcessLedger implements Ledger {
  readonly #options: Required<LedgerOptions>;
  readonly #desks = new Map<string, Desk>();
  /** Of all that is loaded. */
  readonly #recency = new Recency();
  readonly #lanes: Lanes<Waiter, string>;
  readonly #lookups: Lookups;
  #timer: NodeJS.Timeout | undefined;
  #polling: Promise<void> | undefined;
  #closed = false;

  constructor(options: LedgerOptions) {
    this.#options = { namespacesMax: NAMESPACES_MAX, pollMs: POLL_MS, ...options };
    this.#lookups = new Lookups(options.sql);
    this.#lanes = new Lanes({
      memory: (log) => log,
      perform: (log, waiters) => this.#turn(log, waiters),
      sizeMax: WANTED_MAX,
      logsMax: LOGS_MAX,
    });
  }

  known(key: NamespaceKey, wants: Wants = {}): Held | undefined {
    if (this.#closed) return undefined;
    const desk = this.#desk(key.log);
    desk.askedAt = this.#options.clock.now();
    desk.copy.judge(desk.askedAt);
    const known = desk.copy.held(key.namespace);
    if (known === undefined) return undefined;
    this.#recency.touch(key);
    return desk.failing || isEnough(known, wants, desk.askedAt) ? known : undefined;
  }

  async hold({ log, namespace }: NamespaceKey, wants: Wants = {}): Promise<Held> {
    const known = this.known({ log, namespace }, wants);
    if (known !== undefined) return known;
    if (this.#closed) throw new Problem("busy");
    try {
      return await new Promise<Held>((resolve, reject) => {
        this.#wait(log, { namespace, resolve, reject });
      });
    } catch (error) {
      const last = this.#desk(log).copy.held(namespace);
      if (last === undefined) throw spoken(error);
      return last;
    }
  }

  async read(log: string, namespaces: readonly string[]): Promise<Reading> {
    const { clock, sql } = this.#options;
    const readAt = clock.now();
    try {
      const read = await snapshot(sql, (tx) => readFacts(tx, log, namespaces));
      const held = Array.from(read.facts, ([namespace, facts]) => {
        return [namespace, heldAlone(facts, read.asOf, readAt)] as const;
      });
      return { asOf: read.asOf, readAt, held: new Map(held) };
    } catch (error) {
      throw spoken(error);
    }
  }

  async onLog(log: string, jobs: readonly string[]): Promise<Map<string, bigint>> {
    return await this.#lookups.onLog(log, jobs);
  }

  async revoked(log: string): Promise<ReadonlySet<bigint>> {
    try {
      return await readRevoked(this.#options.sql, log);
    } catch (error) {
      throw spoken(error);
    }
  }

  loaded(): { namespaces: number; logs: number } {
    const sizes = Array.from(this.#desks.values(), ({ copy }) => copy.size);
    return { namespaces: sizes.reduce((a, b) => a + b, 0), logs: sizes.length };
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#polling;
    await Promise.all([this.#lanes.idle(), this.#lookups.idle()]);
  }

  #desk(log: string): Desk {
    const known = this.#desks.get(log);
    if (known !== undefined) return known;
    const askedAt = this.#options.clock.now();
    const desk = { copy: new LogCopy(log), failing: false, askedAt, waiting: 0 };
    this.#desks.set(log, desk);
    if (this.#desks.size === 1) this.#rest(this.#options.pollMs);
    return desk;
  }

  #wait(log: string, item: Waiter): void {
    this.#desk(log).waiting += 1;
    this.#lanes.push(log, { kind: "shared", size: 1, item });
  }

  /** One read of a log for all who wait for it. Never rejects. */
  async #turn(log: string, waiters: readonly Waiter[]): Promise<void> {
    const { clock, failed, sql } = this.#options;
    const desk = this.#desk(log);
    const wanted = new Set(waiters.flatMap(({ namespace }) => namespace ?? []));
    try {
      const readAt = clock.now();
      await desk.copy.read((look) => glance(sql, look), [...wanted], readAt);
      desk.failing = false;
      desk.waiting -= waiters.length;
      for (const waiter of waiters) this.#answer(desk, waiter);
    } catch (error) {
      desk.waiting -= waiters.length;
      const missing = error instanceof Problem && error.code === "not-found";
      desk.failing = !missing;
      if (!missing) failed(error);
      for (const { reject } of waiters) reject(error);
    }
    for (const { log, namespace } of this.#recency.overflow(this.#options.namespacesMax)) {
      this.#desks.get(log)?.copy.forget(namespace);
    }
  }

  #answer({ copy }: Desk, waiter: Waiter): void {
    if (waiter.namespace === undefined) {
      waiter.resolve();
      return;
    }
    const held = copy.held(waiter.namespace);
    if (held === undefined) {
      // It was loaded when the read began, and had to make room before the end.
      this.#wait(copy.log, waiter);
      return;
    }
    this.#recency.touch({ log: copy.log, namespace: waiter.namespace });
    waiter.resolve(held);
  }

  #rest(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#polling = this.#poll().then((next) => {
        if (!this.#closed && this.#desks.size > 0) this.#rest(next);
      });
    }, ms).unref();
  }

  /** One question for all logs, and a read of those that have moved. @returns ms to rest */
  async #poll(): Promise<number> {
    const { clock, failed, pollMs, sql } = this.#options;
    const at = clock.now();
    const start = performance.now();
    this.#sweep(at);
    const desks = [...this.#desks.values()].filter(({ copy }) => copy.size > 0);
    if (desks.length === 0) return pollMs;
    const behind: string[] = [];
    try {
      const logs = desks.map(({ copy }) => copy.log);
      const heads = await glance(sql, (tx) => readHeads(tx, logs));
      for (const desk of desks) {
        const { log } = desk.copy;
        if (desk.copy.confirm(heads.get(log), at)) desk.failing = false;
        else behind.push(log);
      }
    } catch (error) {
      for (const desk of desks) desk.failing = true;
      failed(error);
    }
    while (behind.length > 0)
      await Promise.all(behind.splice(0, ABREAST).map((log) => this.#renew(log)));
    if (desks.some(({ failing }) => failing)) return RETRY_MS;
    const took = performance.now() - start;
    return Math.max(pollMs, Math.min(RETRY_MS, REST_FACTOR * took));
  }

  /** What fails is told by the turn. */
  async #renew(log: string): Promise<void> {
    await new Promise<void>((resolve) => this.#wait(log, { resolve, reject: () => resolve() }));
  }

  /** In both directions: a clock that stepped back must not keep a log for as long. */
  #sweep(now: number): void {
    for (const [log, { askedAt, copy, waiting }] of this.#desks) {
      const idle = copy.size === 0 || Math.abs(now - askedAt) > IDLE_MS;
      if (!idle || waiting > 0) continue;
      this.#desks.delete(log);
      for (const namespace of copy.names()) this.#recency.delete({ log, namespace });
    }
  }
}

/** What was read in the time to come is of a clock that stepped back, and may be of any age. */
function isEnough(
  { asOf, readAt }: Held,
  { asOf: size = 0n, readSince }: Wants,
  now: number,
): boolean {
  return asOf >= size && (readSince === undefined || (readSince <= readAt && readAt <= now));
}
