import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { addCheckpoint } from "../../audit/witness/answer.ts";
import { nameOf, WitnessStore } from "../../audit/witness/store.ts";
import { decodeUtf8 } from "../../src/core/text.ts";
import { compiled } from "../compile.ts";
import { checkpointOf } from "./archive.ts";
import { openHome } from "./command.ts";
import { expectCosigned, FORK, LOG, ORIGIN, request, SECONDS, witnessing } from "./witnessing.ts";

const PROCESS = compiled(new URL("witness-process.ts", import.meta.url));
const home = openHome();
afterAll(() => home.remove());
let folders = 0;
let folder = "";
beforeEach(() => {
  folder = join(home.folder, String(folders++));
  mkdirSync(folder);
});

/** Files of the log's own folder that are states. */
function states(): string[] {
  return readdirSync(join(folder, nameOf(ORIGIN))).sort();
}

test("of two processes that looked at the same state, one moves it", () => {
  const [one, two] = [witnessing(folder).store, witnessing(folder).store];
  const [first, second] = [one.latest(ORIGIN), two.latest(ORIGIN)];
  const note = decodeUtf8(checkpointOf(LOG, 7)) ?? "";
  expect(one.advance(ORIGIN, first, note)).toBe(true);
  expect(two.advance(ORIGIN, second, decodeUtf8(checkpointOf(FORK, 40)) ?? "")).toBe(false);
  expect(two.latest(ORIGIN).cosigned?.note).toBe(note);
});

test("who lost a race looks again, and answers by what it then finds", () => {
  const rival = witnessing(folder);
  const own = witnessing(folder);
  const latest = own.store.latest.bind(own.store);
  let raced = false;
  own.store.latest = (origin) => {
    const state = latest(origin);
    if (!raced) addCheckpoint(request(FORK, 0, 40), rival);
    raced = true;
    return state;
  };
  expect(addCheckpoint(request(LOG, 0, 7), own)).toMatchObject({ status: 409, body: "40\n" });
});

test.each(["staged", "linked", "durable", "cleared"])(
  "killed once a state is %s, a witness never signs a second truth",
  (effect) => {
    const run = (kill: string, body: Uint8Array) => {
      const args = [PROCESS, folder, kill];
      return spawnSync(process.execPath, args, { input: body, encoding: "utf8" });
    };
    expect(JSON.parse(run("none", request(LOG, 0, 7)).stdout).status).toBe(200);
    const killed = run(effect, request(LOG, 7, 40));
    expect([killed.signal, killed.stdout]).toEqual(["SIGKILL", ""]);
    const survived = witnessing(folder);
    const size = effect === "staged" ? 7n : 40n;
    expect(survived.store.latest(ORIGIN).cosigned?.checkpoint.size).toBe(size);
    const fork = addCheckpoint(request(FORK, 7, 39), survived);
    expect(fork.status).toBe(effect === "staged" ? 200 : 409);
    // Whichever it has signed now, the other can never follow.
    const [stands, last, other] = effect === "staged" ? [FORK, 39, LOG] : [LOG, 40, FORK];
    expect(addCheckpoint(request(other, last, 40), survived).status).toBe(422);
    expectCosigned(addCheckpoint(request(stands, last, 40), survived), 40, stands);
  },
);

test("a state that is damaged is no reason to begin anew: nothing is signed", () => {
  const own = witnessing(folder);
  addCheckpoint(request(LOG, 0, 7), own);
  writeFileSync(join(folder, nameOf(ORIGIN), "1"), "");
  expect(() => addCheckpoint(request(LOG, 0, 7), own)).toThrow(/damaged/);
});

test("who was stopped between the look and the keeping for too long does not sign", () => {
  let time = SECONDS * 1000;
  const own = witnessing(folder, { now: () => time });
  const state = own.store.latest(ORIGIN);
  time += 10_001;
  const note = decodeUtf8(checkpointOf(LOG, 7)) ?? "";
  expect(() => own.store.advance(ORIGIN, state, note)).toThrow(/too long/);
});

test("old states go an hour after the next one was written, the newest never", () => {
  const real = { now: Date.now };
  const own = witnessing(folder, real);
  for (const [old, size] of [
    [0, 7],
    [7, 8],
    [8, 9],
  ] as const) {
    addCheckpoint(request(LOG, old, size), own);
  }
  expect(states()).toEqual(["1", "2", "3"]);
  const age = (name: string): void => {
    const then = (Date.now() - 3_700_000) / 1000;
    utimesSync(join(folder, nameOf(ORIGIN), name), then, then);
  };
  writeFileSync(join(folder, nameOf(ORIGIN), ".left"), "half");
  for (const name of ["1", "2", ".left"]) age(name);
  addCheckpoint(request(LOG, 9, 10), own);
  expect(states()).toEqual(["2", "3", "4"]);
  for (const name of states()) age(name);
  addCheckpoint(request(LOG, 10, 11), own);
  expect(states()).toEqual(["4", "5"]);
});

test("without its memory a witness does not start", () => {
  expect(() => new WitnessStore({ folder: join(folder, "x"), origins: [], now: Date.now })).toThrow(
    /no folder/,
  );
});
