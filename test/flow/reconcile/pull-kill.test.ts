/** Real processes, killed between the pages of one walk. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { instantText } from "../../../src/core/unit.ts";
import { compiled } from "../../compile.ts";
import { closeHouse, entriesOf, type House, newAgent, newLog, ofKind, openHouse } from "../door.ts";
import { startStandIn } from "./gitlab.ts";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => closeHouse(house));

const PROCESS = compiled(new URL("./pulling-process.ts", import.meta.url));
const MINUTE = 60_000;

test("a process that is killed between pages loses no job: the next one goes on from its mark", async () => {
  const door = house.open();
  const standIn = await startStandIn();
  onTestFinished(() => standIn.close());
  const log = await newLog(door, "killed");
  await newAgent(door, log, 7, [{ effective_from: instantText(door.now - 600 * MINUTE) }]);
  standIn.jobs = Array.from({ length: 350 }, (_, i) => {
    const at = (minutes: number): string => instantText(door.now - minutes * MINUTE);
    const times = { created_at: at(362 - i), started_at: at(361 - i), finished_at: at(360 - i) };
    return {
      id: i + 1,
      runner: 700,
      project: 50,
      status: "success",
      duration: "60.000000001",
      ...times,
    };
  });
  const { reader, writer, urls } = house.database;
  const kept = async (): Promise<bigint> => {
    const [row] = await reader<[{ jobs: bigint }]>`
      select count(*) as jobs from platform_jobs where log = ${log}`;
    return row.jobs;
  };
  const started = (): ChildProcess => {
    const args = [PROCESS, urls.writer, house.archive, standIn.url, standIn.token, log];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "inherit", "inherit"] });
    onTestFinished(() => void child.kill("SIGKILL"));
    return child;
  };

  // Each is killed with a page in its hands that it has not kept.
  for (const page of [1, 3]) {
    const child = started();
    standIn.afterPage = (asked) => void (asked === page && child.kill("SIGKILL"));
    const [, signal] = await once(child, "exit");
    expect(signal).toBe("SIGKILL");
    expect(standIn.asked).toHaveLength(page);
    // Its claim holds for two minutes more.
    await writer`update pull_marks set due_at = '-infinity' where log = ${log}`;
  }
  expect(await kept()).toBe(100n);

  const last = started();
  standIn.afterPage = () => undefined;
  const covered = async () => ofKind(await entriesOf(reader, log), "coverage");
  await vi.waitUntil(async () => (await covered()).length > 0, { timeout: 30_000 });
  last.kill("SIGKILL");
  expect(await kept()).toBe(350n);
  expect(await covered()).toMatchObject([{ body: { jobs: "350" } }]);
  const [first, second, third, ...rest] = standIn.asked;
  expect([second, rest.length]).toEqual([first, 3]);
  expect(rest[0]).toBe(third);
});
