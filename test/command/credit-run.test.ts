import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { entriesOf, ofKind, reported } from "../flow/door.ts";
import { ask, everybody, type House, newLog, openHouse } from "../http/house.ts";
import { minutebook } from "./terminal.ts";

let house: House;
let log: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log } = await newLog(house, "credit", 1));
  const reports = ["7", "8"].map((root_namespace_id, i) => {
    const usage = { duration_ms: "90000", finished_at: "2026-10-10T00:00:00.000Z" };
    const job = { id: String(i + 1), root_namespace_id };
    return reported(1, log, { counter: String(i + 1), job, usage });
  });
  expect((await ask(house, "POST /v1/reports", { json: { reports } })).status).toBe(200);
});
afterAll(() => house.close());

const surroundings = async () => ({
  MINUTEBOOK_SERVER: house.url,
  MINUTEBOOK_TOKEN: await everybody(),
});

async function told(...args: string[]): Promise<{ stdout: string; status: number }> {
  const given = await surroundings();
  const { stdout, stderr, status } = await minutebook([...args, "--log", log], given);
  if (status !== 0) throw new Error(stderr);
  return { stdout, status };
}

const CAUSE = ["--reason", "outage", "--ticket", "INC-7"];

test("a run is previewed, asked for, applied, listed and taken back at a terminal", async () => {
  const list = join(house.archive, "namespaces.txt");
  writeFileSync(list, "8\n");
  const selection = ["--form", "credit", "--share", "1/3", "--namespaces", list];
  const shown = await told("credit-run", "preview", ...selection, "--json");
  const { preview, total } = JSON.parse(shown.stdout);
  expect(total).toBe("-30000.000000");
  const table = (await told("credit-run", "preview", ...selection)).stdout;
  expect(table).toContain("1 lines for 1 namespaces, -0.5000 minutes in all.");

  const asked = JSON.parse((await told("credit-run", "ask", preview, ...CAUSE, "--json")).stdout);
  const applied = (await told("credit-run", "apply", asked.index)).stdout;
  expect(applied).toBe(`All 1 lines of run ${asked.index} stand.\n`);
  const back = (await told("credit-run", "reverse", asked.index, ...CAUSE)).stdout;
  const [, reversal = ""] = /^Run ([0-9]+): /.exec(back) ?? [];
  await told("credit-run", "apply", reversal);
  const rows = (await told("credit-run", "list")).stdout.split("\n").slice(1, 3);
  expect(rows.map((row) => row.trim().split(/ {2,}/).slice(2))).toEqual([
    ["credit", "1", "1", "0.5000", "INC-7"],
    ["credit", "1", "1", "-0.5000", "INC-7", reversal],
  ]);
});

test("a preview of nothing says so, and is not taken for one that can be asked for", async () => {
  const before = ["--form", "zero_rate", "--to", "2026-01-01"];
  const preview = ["credit-run", "preview", ...before, "--log", log];
  const { status, stdout } = await minutebook(preview, await surroundings());
  expect([status, stdout]).toEqual([1, expect.stringMatching(/^0 lines: nothing [^\n]+\n$/)]);
});

test("what a card would have charged is shown, and asked for as adjustments where that is wanted", async () => {
  const file = join(house.archive, "card.json");
  const card = { tracking: "hosted", project_factors: {}, not_billable: [] };
  writeFileSync(file, JSON.stringify({ ...card, runner_factors: { small: "2" } }));
  const months = ["--from", "2026-10", "--to", "2026-11"];
  const { stdout } = await told("what-if", file, ...months);
  const rows = stdout.split("\n").map((row) => row.trim().split(/ {2,}/));
  expect(rows.slice(1, 3)).toEqual([
    ["2026-10-01", "7", "small", "1", "1.5000", "3.0000", "1.5000"],
    ["2026-10-01", "8", "small", "1", "1.5000", "3.0000", "1.5000"],
  ]);
  expect(stdout).toContain("2 builds in all: 3.0000 minutes charged, 6.0000 would be");
  const sums = { stands: "90000.000000", would: "180000.000000", difference: "90000.000000" };
  const document = JSON.parse((await told("what-if", file, ...months, "--json")).stdout);
  expect(document.rows).toMatchObject([sums, sums]);
  expect(document.total).toEqual({
    ...{ jobs: "2", unrated: "0", stands: "180000.000000" },
    ...{ would: "360000.000000", difference: "180000.000000" },
  });
  const backwards = ["--from", "2026-11", "--to", "2026-11"];
  await expect(told("what-if", file, ...backwards)).rejects.toThrow(/not_allowed to/);
  const adjustments = async () => {
    const entries = ofKind(await entriesOf(house.database.reader, log), "adjustment");
    return entries.filter(({ body }) => body.credit_run === "");
  };
  expect(await adjustments()).toEqual([]);
  const proposed = (await told("what-if", file, ...months, "--propose", ...CAUSE)).stdout;
  const [entry] = await adjustments();
  expect(proposed).toContain(`Asked for as entry ${entry?.index}: 2 lines.`);
  const scope = { entry: "", project_id: "", reverses: "", usage_month: "2026-10-01" };
  expect(entry?.body.lines).toEqual([
    { amount: "90000.000000", namespace_id: "7", ...scope },
    { amount: "90000.000000", namespace_id: "8", ...scope },
  ]);
});
