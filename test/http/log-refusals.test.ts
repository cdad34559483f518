import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Answered, ask } from "./house.ts";
import { openServedLog, problem, type ServedLog } from "./served-log.ts";

let house: ServedLog;

beforeAll(async () => {
  house = await openServedLog();
});

afterAll(() => house.close());

const get = (path: string): Promise<Answered> =>
  ask(house, `GET /logs/${house.log}/${path}`, { token: house.auditor });

test.each([
  "tile/0/0",
  "tile/0/0000",
  "tile/0/x000/000",
  "tile/0/x000/x000",
  "tile/0/000/000",
  "tile/0/x01/000",
  "tile/00/000",
  "tile/-1/000",
  "tile/+0/000",
  "tile/64/000",
  "tile/0/000.p/0",
  "tile/0/000.p/00",
  "tile/0/000.p/01",
  "tile/0/000.p/256",
  "tile/0/000.p/1000",
  "tile/0/000.p/-1",
  "tile/0/000.p/1e1",
  "tile/0/000.p/",
  "tile/0/000.p",
  "tile/0/000/",
  "tile/0//000",
  "tile/0/",
  "tile/0",
  "tile/0/000.P/1",
  "tile/0/%30%30%30",
  "tile/0%2F000",
  "tile/entries%2f000",
  "tile/0/000%00",
  "tile/0/０００",
  "tile/0/..%2f000",
  "tile/data/000",
  "tile/entries/0/000",
  "tile/Entries/000",
  "tile/entries/000.p/256",
  "tile/entries/x999/x999/x999/x999/x999/x999/x999/999",
])("%s is a path that no tile has", async (path) => {
  expect(problem(await get(path))).toEqual([400, "invalid-tile"]);
});

test("a width that no checkpoint had is no tile, and one that the full tile replaced may be gone", async () => {
  expect(problem(await get("tile/0/001.p/1"))).toEqual([400, "invalid-tile"]);
  expect(problem(await get("tile/entries/001.p/1"))).toEqual([400, "invalid-tile"]);
  expect(problem(await get("tile/0/000.p/255"))).toEqual([404, "not-found"]);
  expect((await get("tile/0/000")).status).toBe(200);
});

test("nothing beyond the published checkpoint", async () => {
  const { last } = house;
  const wider = last - 256 + 1;
  for (const path of [
    "tile/0/001",
    `tile/0/001.p/${wider}`,
    "tile/0/002",
    "tile/0/x999/x999/x999/999",
    "tile/1/000",
    "tile/1/000.p/2",
    "tile/2/000.p/1",
    "tile/63/000.p/1",
    "tile/entries/001",
    `tile/entries/001.p/${wider}`,
    `checkpoint/${last + 1}`,
    "checkpoint/9223372036854775807",
  ]) {
    expect([path, ...problem(await get(path))]).toEqual([path, 404, "beyond-checkpoint"]);
  }
});

test.each([
  "checkpoint/0",
  "checkpoint/01",
  "checkpoint/x",
  "checkpoint/",
  "checkpoint/3/",
  "tile",
  "tiles/0/000",
])("%s is missing like anything else", async (path) => {
  expect(problem(await get(path))).toEqual([404, "not-found"]);
});

test("an archive that lost a tile is a failure of ours, and one that is away is said to be", async () => {
  const root = join(house.archive, house.log);
  await rm(join(root, "tile", "1"), { recursive: true });
  expect(problem(await get("tile/1/000.p/1"))).toEqual([500, "internal"]);
  await rename(house.archive, `${house.archive}-away`);
  expect(problem(await get("tile/0/000"))).toEqual([503, "archive-unavailable"]);
  await rename(`${house.archive}-away`, house.archive);
  expect((await get("tile/0/000")).status).toBe(200);
});
