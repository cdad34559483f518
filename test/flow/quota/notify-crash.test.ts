/** Processes that die, and many at once: each change is told once. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { type NotifyLoop, notify, notifyLoop } from "../../../src/flow/quota/notify.ts";
import { connect } from "../../../src/store/connect.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { MINUTE_MS, outboxOf, QuotaLog, random, START, tell, toldOf } from "./told.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
  await db.superuser.unsafe(`
    create function die() returns trigger language plpgsql security definer as $$
    begin
      perform pg_terminate_backend(pg_backend_pid());
      perform pg_sleep(60);
      return null;
    end $$`);
});
afterAll(() => db.drop());

let logs = 0;
const newLog = (): Promise<QuotaLog> => {
  logs += 1;
  return new QuotaLog(logs).create(db.owner);
};

const EFFECTS = [
  ["notifications", "before insert"],
  ["notifications", "after insert"],
  ["quota_levels", "before insert"],
  ["quota_levels", "after insert or update"],
  ["quota_marks", "before update"],
  ["quota_marks", "after update"],
] as const;

test.each([
  ...EFFECTS.map(([table, event]) => `create trigger dying ${event} on ${table} for each row`),
  // At COMMIT itself.
  "create constraint trigger dying after update on quota_marks deferrable initially deferred for each row",
])(
  "T59 who dies at `%s` has told nothing, and whoever comes next tells it once",
  async (trigger) => {
    const log = await newLog();
    log.limit(1, 100);
    log.limit(2, 100);
    log.use(1, 80n * MINUTE_MS);
    await log.load(db.owner);
    await tell(db.writer, log.log, log.now);
    log.use(1, 20n * MINUTE_MS);
    log.use(2, 96n * MINUTE_MS);
    await log.load(db.owner);
    const before = await everything(log.log);

    const [, , table = ""] = /( on )(\w+)/.exec(trigger) ?? [];
    await db.superuser.unsafe(`${trigger} execute function die()`);
    onTestFinished(async () => {
      await db.superuser.unsafe(`drop trigger if exists dying on ${table}`);
    });
    const dying = connect(db.urls.writer, { max: 1 });
    const notifying = { clock: { now: () => log.now }, random };
    await expect(notify({ ...notifying, sql: dying }, log.log)).rejects.toThrow();
    await dying.end({ timeout: 1 });
    expect(await everything(log.log)).toEqual(before);
    await db.superuser.unsafe(`drop trigger dying on ${table}`);

    expect((await tell(db.writer, log.log, log.now)).sort()).toEqual([
      "quota.danger",
      "quota.exceeded",
    ]);
    expect(await tell(db.writer, log.log, log.now)).toEqual([]);
    expect(await toldOf(db.reader, log.log)).toEqual([
      "1 quota.warning warning",
      "1 quota.exceeded exceeded",
      "2 quota.danger danger",
    ]);
  },
);

/** All that a look writes. */
async function everything(log: string): Promise<unknown> {
  return await Promise.all(
    ["quota_marks", "quota_levels", "notifications"].map(
      (table) => db.reader`select * from ${db.reader(table)} where log = ${log} order by 1, 2`,
    ),
  );
}

test("four notifiers on one database tell each change once, and leave nothing", async () => {
  const some = await Promise.all([newLog(), newLog(), newLog()]);
  for (const log of some) for (let n = 1; n <= 40; n += 1) log.limit(n, 100);
  await Promise.all(some.map((log) => log.load(db.owner)));
  const abort = new AbortController();
  const failures: unknown[] = [];
  const counted: string[] = [];
  const loop: Omit<NotifyLoop, "sql"> = {
    clock: { now: () => START },
    random,
    signal: abort.signal,
    onTold: (type) => counted.push(type),
    onFailure: (error) => failures.push(error),
    onRound: () => undefined,
    intervalMs: 1,
  };
  const pools = Array.from({ length: 4 }, () => connect(db.urls.writer, { max: 2 }));
  const running = pools.map((sql) => notifyLoop({ ...loop, sql }));
  // Each namespace comes to all three levels, in steps that the notifiers meet as they run.
  for (const minutes of [76n, 20n, 4n]) {
    for (let n = 1; n <= 40; n += 1) {
      for (const log of some) log.use(n, minutes * MINUTE_MS);
      if (n % 8 === 0) await Promise.all(some.map((log) => log.load(db.owner)));
    }
    await vi.waitUntil(async () => {
      const behind = await db.reader`
        select from heads join quota_marks using (log)
        where index < size and log = any(${some.map(({ log }) => log)})`;
      return behind.length === 0;
    }, 30_000);
  }
  abort.abort();
  await Promise.all(running);
  await Promise.all(pools.map((pool) => pool.end()));
  expect(failures).toEqual([]);
  const expected = ["quota.warning", "quota.danger", "quota.exceeded"];
  for (const { log } of some) {
    const kept = await outboxOf(db.reader, log);
    for (let n = 1; n <= 40; n += 1) {
      const own = kept.filter(({ namespace }) => namespace === String(n));
      expect(own.map(({ event }) => event.type)).toEqual(expected);
      expect(own.map(({ number }) => number)).toEqual(["1", "2", "3"]);
    }
  }
  expect(counted).toHaveLength(3 * 40 * 3);
});

type Step =
  | { kind: "use" | "limit" | "pack"; namespace: number; minutes: number }
  | { kind: "look" | "month" };

const namespace = fc.integer({ min: 1, max: 3 });
const step = fc.oneof(
  { weight: 6, arbitrary: event("use", 60) },
  { weight: 2, arbitrary: event("limit", 150) },
  { weight: 1, arbitrary: event("pack", 80) },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("look" as const) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("month" as const) }) },
);

function event(kind: "use" | "limit" | "pack", max: number): fc.Arbitrary<Step> {
  return fc.record({
    kind: fc.constant(kind),
    namespace,
    minutes: fc.integer({ min: 1, max }),
  });
}

/** What a person with a sheet of paper would tell, in whole minutes. */
class Paper {
  readonly said: string[] = [];
  readonly #level = new Map<number, number>();
  readonly #limit = new Map<number, number>();
  readonly #packs = new Map<number, number>();
  readonly #used = new Map<number, number>();
  /** So much was said up to the last look. */
  #looked = 0;

  use(n: number, minutes: number): void {
    this.#used.set(n, (this.#used.get(n) ?? 0) + minutes);
  }
  limit(n: number, minutes: number): void {
    this.#limit.set(n, minutes);
  }
  pack(n: number, minutes: number): void {
    this.#packs.set(n, (this.#packs.get(n) ?? 0) + minutes);
  }
  look(): void {
    this.#compare();
    this.#looked = this.said.length;
  }
  /**
   * What is new is told of the month as it ended; of one before that it is no news any more. What went over
   * the limit is taken from the packs, which all last for ever here.
   */
  month(): void {
    this.said.length = this.#looked;
    this.#compare();
    for (const n of [1, 2, 3]) {
      const over = Math.max(0, (this.#used.get(n) ?? 0) - (this.#limit.get(n) ?? 0));
      this.#packs.set(n, Math.max(0, (this.#packs.get(n) ?? 0) - over));
    }
    this.#used.clear();
    this.#level.clear();
  }
  #compare(): void {
    for (const n of [1, 2, 3]) {
      if (!this.#limit.has(n) && !this.#packs.has(n)) continue;
      const whole = (this.#limit.get(n) ?? 0) + (this.#packs.get(n) ?? 0);
      const left = whole - (this.#used.get(n) ?? 0);
      const level = left <= 0 ? 3 : left * 20 < whole ? 2 : left * 4 < whole ? 1 : 0;
      const before = this.#level.get(n) ?? 0;
      const names = ["none", "warning", "danger", "exceeded"];
      const type = level < before ? "recovered" : names[level];
      if (level !== before) this.said.push(`${n} quota.${type} ${names[level]}`);
      this.#level.set(n, level);
    }
  }
}

test("what is told of random histories, looked at in random places, is what a person would tell", async () => {
  const steps = fc.array(step, { minLength: 1, maxLength: 25 });
  await fc.assert(
    fc.asyncProperty(steps, async (history) => {
      const log = await newLog();
      const paper = new Paper();
      // Limits are never none at all: that would be no end.
      for (const n of [1, 2, 3]) {
        log.limit(n, 100);
        paper.limit(n, 100);
      }
      for (const each of [...history, { kind: "look" } as const]) {
        log.now += 1;
        if (each.kind === "look") {
          await log.load(db.owner);
          await tell(db.writer, log.log, log.now);
          paper.look();
        } else if (each.kind === "month") {
          const at = new Date(log.now);
          log.now = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1, 2);
          paper.month();
        } else if ("namespace" in each) {
          if (each.kind === "use") log.use(each.namespace, BigInt(each.minutes) * MINUTE_MS);
          else log[each.kind](each.namespace, each.minutes);
          paper[each.kind](each.namespace, each.minutes);
        }
      }
      const sorted = (all: readonly string[]): string[] =>
        ["1", "2", "3"].flatMap((n) => all.filter((line) => line.startsWith(`${n} `)));
      expect(await toldOf(db.reader, log.log)).toEqual(sorted(paper.said));
    }),
    { numRuns: 60 },
  );
});
