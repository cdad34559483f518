/** One small log with a little of everything, for tests of what compares and rebuilds. */
import { parseVkey } from "../../src/core/note.ts";
import type { Notary } from "../../src/flow/check/tree.ts";
import type { Clock } from "../../src/flow/clock.ts";
import { verifySignature } from "../../src/flow/report/signature.ts";
import { refresh } from "../../src/flow/usage/fold.ts";
import { TestLedger } from "../ledger.ts";
import type { FreshDatabase } from "../postgres.ts";

export const LOG = "a".repeat(32);
export const HOSTED = {
  uuid: "r-1",
  runner_id: "7",
  machine_type: "small",
  tracking: "hosted",
} as const;
export const OWN = {
  uuid: "r-2",
  runner_id: "8",
  machine_type: "own",
  tracking: "self_managed",
} as const;
export const clock: Clock = { now: () => Date.UTC(2026, 10, 29) };

/** Who must have signed the checkpoints of this ledger. */
export function notaryOf(ledger: TestLedger): Notary {
  const vkeys = [parseVkey(ledger.vkey)].filter((vkey) => vkey !== undefined);
  return { verify: verifySignature, vkeys: () => vkeys };
}

/** A little of everything: each kind of answer, a checkpoint below the seal, a tail behind it. */
export async function writeHistory(db: FreshDatabase): Promise<TestLedger> {
  const made = new TestLedger(LOG);
  made.card("hosted", { small: "1/3", "*": "2" });
  made.card("self_managed", { "*": "1" });
  const agent = made.enrol(1, [HOSTED, OWN]);
  for (let job = 1; job <= 6; job += 1) {
    made.report(agent, { job, runner: HOSTED, namespace: 1 + (job % 2), duration: 1_001n });
    made.report(agent, { job, runner: OWN, project: 10 + (job % 3) });
  }
  await made.load(db.owner);
  await made.seal(db.owner, 9n);
  made.now += 60_000;
  made.report(agent, { job: 1, runner: HOSTED, duration: 5n });
  made.report(agent, {
    job: 2,
    runner: HOSTED,
    namespace: 1,
    duration: 1_001n,
    finished: "2026-11-01T00:00:00.000Z",
  });
  made.report(agent, { job: 9, runner: { ...HOSTED, uuid: "r-unknown" } });
  made.report(agent, { job: 10, runner: HOSTED, reason: "runner_system_failure" });
  await made.load(db.owner);
  await made.seal(db.owner);
  await refresh({ sql: db.writer, clock });
  made.report(agent, { job: 11, runner: HOSTED });
  await made.load(db.owner);
  return made;
}
