/** The auditor's own program against the service: it knows nothing of it but the standard and its key. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { command, openHome } from "../audit/command.ts";
import { openServedLog, type ServedLog } from "./served-log.ts";

const home = openHome();
let house: ServedLog;
let url: string;
let trust: string[];

beforeAll(async () => {
  house = await openServedLog();
  url = `${house.url}/logs/${house.log}`;
  const token = join(home.folder, "auditor.jwt");
  writeFileSync(token, `${house.auditor}\n`);
  trust = ["--vkey", house.vkey, "--token-file", token];
});

afterAll(async () => {
  home.remove();
  await house.close();
});

test("a log that the service serves is proven, with the checkpoints that it kept", async () => {
  const { err, exit, out } = await command("verify", url, ...trust, "--json");
  expect({ err, exit }).toEqual({ err: "", exit: 0 });
  const [outcome] = JSON.parse(out).logs;
  expect(outcome).toMatchObject({ log: house.log, size: String(house.last), exit: 0 });
  expect(outcome.checkpoints).toBeGreaterThan(1);
  expect(outcome.limits).toHaveLength(1);
});

test("what was fetched from the service is proven offline, and is the same log", async () => {
  const copy = join(home.folder, "copy");
  expect(await command("bundle", url, copy, ...trust)).toMatchObject({ exit: 0, err: "" });
  expect((await command("verify", copy, "--vkey", house.vkey)).exit).toBe(0);
  expect((await command("diff", copy, url, ...trust)).exit).toBe(0);
  const part = join(home.folder, "part");
  const range = ["--from", "200", "--to", "299"];
  expect((await command("bundle", url, part, ...trust, ...range)).exit).toBe(0);
  expect((await command("verify", part, "--vkey", house.vkey, ...range)).exit).toBe(0);
  const bundle = join(copy, house.log, "tile/entries/000");
  expect(readFileSync(join(part, house.log, "tile/entries/000"))).toEqual(readFileSync(bundle));
});

test("without a token there is no such log, and no verdict", async () => {
  const { err, exit } = await command("verify", url, "--vkey", house.vkey);
  expect({ err, exit }).toEqual({ exit: 2, err: expect.stringContaining("no such log") });
});
