/**
 * One process of the service with ten writers, each sending its own batches one after the other; to be
 * killed at any moment and started again with the same plan. Says each answer on standard output after
 * it was given: `digest code index`.
 */
import { writeSync } from "node:fs";
import { Problem } from "../../src/core/problem.ts";
import { connect } from "../../src/store/connect.ts";
import { openDoor, reported } from "./door.ts";

export interface Plan {
  url: string;
  archive: string;
  log: string;
  /** Of the process's key. */
  seed: number;
  /** Processes with the same one report the same jobs. */
  block: number;
  finished_at: string;
}

export const WRITERS = 10;
export const BATCHES = 4;
export const BATCH = 5;

/** The reports of one batch of one writer; the same for every try. */
export function batchOf({ seed, block, log, finished_at }: Plan, writer: number, batch: number) {
  return Array.from({ length: BATCH }, (_, i) => {
    const n = (writer * BATCHES + batch) * BATCH + i + 1;
    const job = { id: String(block * 1_000_000 + n) };
    return reported(seed, log, { counter: String(n), job, usage: { finished_at } });
  });
}

const plan: Plan | undefined = process.argv[2] && JSON.parse(process.argv[2]);
if (plan !== undefined) await write(plan);

async function write(plan: Plan): Promise<void> {
  const sql = connect(plan.url, { max: 4, name: `writer ${plan.seed}` });
  const door = openDoor(sql, { archive: plan.archive, seed: `${plan.seed} ${process.pid}` });
  await Promise.all(
    Array.from({ length: WRITERS }, async (_, writer) => {
      for (let batch = 0; batch < BATCHES; batch += 1) {
        const { results } = await untilAnswered(() => door.submit(...batchOf(plan, writer, batch)));
        const said = results.map(({ code, digest, index }) => `${digest} ${code} ${index}\n`);
        writeSync(1, said.join(""));
      }
    }),
  );
  await door.close();
  await sql.end();
}

/** As an agent does: the same bytes again after `busy`. */
async function untilAnswered<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Problem) || error.code !== "busy") throw error;
    }
  }
}
