/** One function, three executions: a Redis, a Redis Cluster, and this process. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Figures } from "../../../src/core/quota/figures.ts";
import type { Answer, Ask, Command, LiveStore } from "../../../src/core/quota/live.ts";
import { openLiveProcess } from "../../../src/store/live-process.ts";
import { openLiveRedis } from "../../../src/store/live-redis.ts";
import { NOW } from "../../core/quota/live.ts";
import {
  type RedisCluster,
  type RedisServer,
  startRedis,
  startSteadyCluster,
} from "../../redis.ts";

/** What is tested here is what is answered, on a machine that does a lot beside. */
const PATIENT = { answerMsMax: 20_000 };
const HOUR = 3_600_000;
const LOG = "0123456789abcdef0123456789abcdef";

let single: RedisServer;
let cluster: RedisCluster;
let viaSingle: LiveStore;
let viaCluster: LiveStore;

beforeAll(async () => {
  [single, cluster] = await Promise.all([startRedis(), startSteadyCluster()]);
  viaSingle = await openLiveRedis({ kind: "single", url: single.url }, PATIENT);
  viaCluster = await openLiveRedis({ kind: "cluster", urls: cluster.urls }, PATIENT);
});

afterAll(async () => {
  await Promise.all([viaSingle.close(), viaCluster.close()]);
  await Promise.all([single.stop(), cluster.stop()]);
});

/** Few, so that they meet; one passes 2^63. */
const job = fc.constantFrom("1", "2", "3", "9007199254740993", "18446744073709551617");

/** Around everything that an arithmetic could stumble over: limbs of 14 digits, 2^53, 2^63. */
const quantity = fc.oneof(
  fc.bigInt(0n, 12n),
  fc.bigInt(0n, 12n),
  fc.bigInt(0n, 10n ** 48n - 1n),
  fc
    .tuple(
      fc.constantFrom(10n ** 14n, 10n ** 28n, 10n ** 42n, 2n ** 53n, 2n ** 63n),
      fc.bigInt(-2n, 2n),
    )
    .map(([edge, beside]) => edge + beside),
);

/** A bound that equals a sum is where "less" and "not more" part. */
const bound = fc.option(
  fc.oneof(
    fc.bigInt(-3n, 40n),
    fc.bigInt(-3n, 40n),
    quantity,
    quantity.map((value) => -value),
  ),
  { nil: undefined, freq: 6 },
);

/** History's time: a little back, or ahead, through ends of reservations and months, and through whole hours. */
const beside = (min: number, max: number): fc.Arbitrary<number> =>
  fc.oneof(
    fc.integer({ min, max }).map((seconds) => NOW + seconds * 1_000),
    fc.integer({ min, max }).map((ms) => NOW + ms),
  );
const moment = fc
  .tuple(beside(-20, 60), fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, fc.constant(HOUR)))
  .map(([at, later]) => at + later);

const by = fc.bigInt(1n, 3n);

/** Kinds of asks, with quantities and ends of these. */
const asking = (
  job: fc.Arbitrary<string>,
  quantity: fc.Arbitrary<bigint>,
  until: fc.Arbitrary<number>,
): fc.Arbitrary<Ask> =>
  fc.oneof(
    fc.record({ kind: fc.constant("start" as const), job, floor: quantity, until }),
    {
      weight: 3,
      arbitrary: fc.record(
        {
          kind: fc.constant("run" as const),
          job,
          amount: quantity,
          elapsedMs: quantity,
          until,
          by,
          offered: fc.constant(true as const),
        },
        { requiredKeys: ["kind", "job", "amount", "elapsedMs", "until", "by"] },
      ),
    },
    fc.record({ kind: fc.constant("go_on" as const), job }),
    fc.record({ kind: fc.constant("never_ran" as const), job }),
    fc.record({ kind: fc.constant("revoked" as const), job, by }),
  );

const own: fc.Arbitrary<Figures> = fc.record({
  asOf: fc.oneof(
    { weight: 3, arbitrary: fc.bigInt(0n, 5n) },
    { weight: 1, arbitrary: fc.bigInt(2n ** 63n - 3n, 2n ** 63n) },
  ),
  touched: fc.bigInt(-1n, 5n),
  from: moment.map((ms) => ms - 60_000),
  until: moment.map((ms) => ms + 40_000),
  startBound: bound,
  runBound: bound,
  readAt: moment,
  text: fc.constantFrom('{"month":"2027-01-01"}', '{"pack":"a\\nb,c"}', '{"pack":"Ü, é"}'),
});

const jobs = fc.uniqueArray(job, { maxLength: 5 });

const commands: fc.Arbitrary<Command> = fc
  .record(
    {
      now: moment,
      figures: own,
      back: fc.bigInt(0n, 5n),
      settled: jobs,
      looked: jobs,
      force: fc.constant(true as const),
      inspect: fc.constant(true as const),
      recount: fc.constant(true as const),
      asks: fc.array(asking(job, quantity, moment), { maxLength: 5 }),
    },
    { requiredKeys: ["now", "figures", "back", "settled", "asks"] },
  )
  .map(({ back, ...command }) => {
    const { asOf } = command.figures;
    return { ...command, since: asOf > back ? asOf - back : 0n };
  });

const anything = fc.array(
  fc.oneof({ weight: 20, arbitrary: commands }, fc.constant("flush" as const)),
  { minLength: 5, maxLength: 40 },
);

/** What nearly all that is asked is, and the script answers by its shortest way: one job at a time, by the same figures. */
const usual = fc
  .record({
    figures: own,
    few: fc.option(fc.bigInt(-1n, 18n), { nil: undefined, freq: 6 }),
    steps: fc.array(
      fc.record({
        now: fc
          .tuple(beside(0, 60), fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, HOUR, 2 * HOUR))
          .map(([at, later]) => at + later),
        ask: asking(
          fc.oneof({ weight: 3, arbitrary: fc.constantFrom("1", "2") }, job),
          // One that is long makes the sums so, and all that follows goes the longer way.
          fc.oneof({ weight: 40, arbitrary: fc.bigInt(0n, 6n) }, quantity),
          fc.constantFrom(NOW + 20_000, NOW + 65_000, NOW + HOUR, NOW + 2 * HOUR),
        ),
        grown: fc.bigInt(0n, 1n),
        back: fc.constantFrom(0n, 1n, 1n, 1n),
      }),
      { minLength: 10, maxLength: 40 },
    ),
  })
  .map(({ figures, few, steps }) => {
    const own = {
      ...figures,
      from: NOW - HOUR,
      until: NOW + 3 * HOUR,
      startBound: few,
      runBound: few,
    };
    let asOf = 5n;
    return steps.map(({ now, ask, grown, back }): Command => {
      asOf += grown;
      return { now, figures: { ...own, asOf }, since: asOf - back, settled: [], asks: [ask] };
    });
  });

const history = fc.oneof(anything, usual);

test("Redis, a Redis Cluster and this process answer alike, whatever is said and asked in whatever order", async () => {
  const kinds = new Map<string, number>();
  let namespace = 0;
  await fc.assert(
    fc.asyncProperty(history, async (steps) => {
      namespace += 1;
      const key = { log: LOG, namespace: String(namespace) };
      let inProcess = openLiveProcess();
      for (const step of steps) {
        if (step === "flush") {
          await Promise.all([single, ...cluster.masters].map((node) => node.say("FLUSHALL")));
          inProcess = openLiveProcess();
          continue;
        }
        const [expected, bySingle, byCluster] = await Promise.all(
          [inProcess, viaSingle, viaCluster].map((store) => store.run(key, step)),
        );
        expect(bySingle).toEqual(expected);
        expect(byCluster).toEqual(expected);
        count(kinds, expected);
      }
      const [all] = await Promise.all([viaSingle.run(key, LOOK), inProcess.run(key, LOOK)]);
      expect(await inProcess.run(key, LOOK)).toEqual(all);
    }),
    { numRuns: 300 },
  );
  // The histories are not all of one kind: each answer that there is was given often.
  expect(
    Math.min(...["behind", "gap", "granted", "refused"].map((kind) => kinds.get(kind) ?? 0)),
  ).toBeGreaterThan(10);
});

const LOOK: Command = {
  now: NOW,
  figures: {
    ...{ asOf: 2n ** 63n, touched: -1n, from: NOW - HOUR, until: NOW + HOUR, readAt: NOW },
    ...{ startBound: undefined, runBound: undefined, text: "{}" },
  },
  since: 0n,
  settled: [],
  inspect: true,
  asks: [],
};

function count(kinds: Map<string, number>, answer: Answer | undefined): void {
  const add = (kind: string): unknown => kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  if (answer?.kind === "done") {
    for (const { allowed } of answer.results) add(allowed ? "granted" : "refused");
  } else if (answer !== undefined) {
    add(answer.kind);
  }
}
