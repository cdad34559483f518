/** A credit run over 50,000 namespaces, whose processes are killed while they apply it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Crediting } from "../../../src/flow/credit/ask.ts";
import { preview } from "../../../src/flow/credit/preview.ts";
import { compiled } from "../../compile.ts";
import { closeHouse, type Door, type House, newAgent, newLog, openHouse } from "../door.ts";
import { begin, beginReversal, creditingOf, whole, work } from "./crediting.ts";

const NAMESPACES = 50_000;
const PROCESS = compiled(new URL("./applying-process.ts", import.meta.url));

let house: House;
let door: Door;
let crediting: Crediting & { close(): Promise<void> };
let log: string;
beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  crediting = creditingOf(door, house.database.writer);
  log = await newLog(door, "incident");
  await newAgent(door, log, 7);
  const builds = Array.from({ length: NAMESPACES }, (_, i) => ({
    namespace: 1 + i,
    duration: BigInt(1_000 + i),
    finished: "2026-10-15T12:00:00.000Z",
  }));
  await work(door, { log, seed: 7 }, builds);
});
afterAll(async () => {
  await crediting.close();
  await closeHouse(house);
});

function applies(run: bigint): ChildProcess {
  const { urls } = house.database;
  const args = [PROCESS, urls.writer, house.archive, log, String(run)];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

/** Kills the process when it has said so many steps; it is then within the next one. */
async function killedAfter(run: bigint, steps: number): Promise<void> {
  const child = applies(run);
  let said = 0;
  child.stdout?.on("data", () => {
    said += 1;
    if (said >= steps) child.kill("SIGKILL");
  });
  const [, signal] = await once(child, "exit");
  expect(signal).toBe("SIGKILL");
}

async function endOf(child: ChildProcess): Promise<unknown> {
  const [code] = await once(child, "exit");
  return code;
}

/** Of the lines of a run, and of what each namespace was charged with all of them. */
async function sums(run: bigint) {
  const [row] = await house.database.reader`
    select
      sum(lines)::bigint as lines,
      count(*) filter (where lines = 1 and amount = -charged) as taken,
      count(*) filter (where lines = 1 and amount = charged) as given
    from (
      select namespace_id, sum(lines) as lines, sum(amount) as amount, sum(charged) as charged
      from (
        select namespace_id, 1 as lines, amount, 0 as charged
        from adjustments
        where log = ${log} and credit_run = ${run}
        union all
        select namespace_id, 0, 0, compute_ms
        from entries
        where log = ${log} and kind = 'usage'
      ) as parts
      group by namespace_id
    ) as namespaces`;
  return row;
}

test("a run over 50,000 namespaces that is killed and resumed is applied once, and reversed once", async () => {
  const shown = await preview(crediting, log, { form: "zero_rate" });
  expect(shown.lines).toBe(BigInt(NAMESPACES));
  const run = await begin(crediting, log, shown);
  await killedAfter(run, 2);
  await expect(beginReversal(crediting, log, run)).rejects.toMatchObject({
    code: "credit-run-under-way",
  });

  // Two at once, and one of them is killed besides.
  const together = [endOf(applies(run)), endOf(applies(run)), killedAfter(run, 1)];
  expect(await Promise.all(together)).toEqual([0, 0, undefined]);
  const applied = { lines: BigInt(NAMESPACES), taken: BigInt(NAMESPACES), given: 0n };
  expect(await sums(run)).toEqual(applied);

  const back = await beginReversal(crediting, log, run);
  await killedAfter(back, 2);
  await whole(crediting, log, back);
  expect(await sums(back)).toEqual({ ...applied, taken: 0n, given: BigInt(NAMESPACES) });
  await expect(beginReversal(crediting, log, run)).rejects.toMatchObject({
    code: "already-reversed",
  });
}, 240_000);
