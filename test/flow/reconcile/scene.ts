/**
 * What tests of reconciliation begin with: a house, for each test a log of its own with one hosted runner, and a
 * stand-in of the platform. Hooks set them, and tests read them by name.
 */
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { instantText } from "../../../src/core/unit.ts";
import { enlistRunners, type Pulling } from "../../../src/flow/reconcile/pull.ts";
import { closeHouse, type Door, type House, newAgent, newLog, openHouse } from "../door.ts";
import { type ApiJob, jobEnded, type StandIn, startStandIn } from "./gitlab.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

export let house: House;
export let door: Door;
export let log: string;
/** Of the test's key, which speaks for runner 700 as `u<seed>` since nine days ago. */
export let seed = 20;
export let standIn: StandIn;
/** The runner's jobs at the stand-in. */
export let pulling: Pulling;

export function withLogs(name: string): void {
  beforeAll(async () => {
    house = await openHouse();
    door = house.open();
  }, 60_000);
  afterAll(() => closeHouse(house));
  beforeEach(async () => {
    seed += 1;
    log = await newLog(door, `${name} ${seed}`);
    const effective_from = instantText(door.now - 9 * DAY);
    await newAgent(door, log, seed, [{ uuid: `u${seed}`, effective_from }]);
  });
}

export function withPlatform(name: string): void {
  withLogs(name);
  beforeAll(async () => {
    standIn = await startStandIn();
  });
  afterAll(() => standIn.close());
  beforeEach(async () => {
    const { token, url } = standIn;
    pulling = {
      ...{ sql: house.database.writer, appender: door.appender, random: door.random },
      clock: { now: () => door.now },
      gitlabs: [{ log, url, token }],
      signal: new AbortController().signal,
      intervalMs: HOUR,
      lookbackMs: DAY,
      monthLookbackMs: 90 * DAY,
    };
    await enlistRunners(pulling);
  });
  afterEach(() => {
    const afterPage = (): void => undefined;
    Object.assign(standIn, { jobs: [], faults: [], asked: [], afterPage, headers: {} });
  });
}

/** A job of a minute that ended so long ago. */
export function jobOf(id: number, agoMs: number, more: Partial<ApiJob> = {}): ApiJob {
  return jobEnded(id, door.now - agoMs, more);
}
