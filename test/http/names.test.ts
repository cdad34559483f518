/** Names beside the log: told, joined in files that ask for them, and erased from everything. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parse } from "csv-parse/sync";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { importedCell } from "../../src/format/csv.ts";
import { reported } from "../flow/door.ts";
import { HOSTILE } from "../format/sheet.ts";
import { type Answered, ask, type House, newLog, openHouse, sealedSize, tokenOf } from "./house.ts";
import { madeExport } from "./made-export.ts";

let house: House;
let log: string;
let platform: string;
let finance: string;

/** A project for each name that a file could be spoilt by. */
const PROJECTS = HOSTILE.map((name, at) => {
  return { kind: "project", id: String(100 + at), name };
});

beforeAll(async () => {
  house = await openHouse();
  ({ log } = await newLog(house, "named", 1));
  platform = await tokenOf(["platform"], { logs: [log] });
  finance = await tokenOf(["finance"]);
  const reports = PROJECTS.map(({ id }, at) => {
    const job = { id, project_id: id, root_namespace_id: "7" };
    return reported(1, log, { counter: String(at + 1), job });
  });
  await ask(house, "POST /v1/reports", { json: { reports } });
  await sealedSize(house, log);
});
afterAll(() => house.close());

const put = (names: unknown): Promise<Answered> =>
  ask(house, `PUT /v1/names/${log}`, { token: platform, json: { names } });

async function fileOf(path: string): Promise<Record<string, string>[]> {
  const { text } = await ask(house, `GET ${path}/file`, { token: finance });
  return parse(text, { columns: true, record_delimiter: "\r\n", cast: importedCell });
}

test("each file that asks for names has them behind its columns, whatever they are made of, and nothing else changes", async () => {
  const seven = { kind: "namespace", id: "7", name: "=2+2" };
  const runner = { kind: "runner", id: "700", name: "saas-linux" };
  const { json, status } = await put([seven, runner, ...PROJECTS]);
  expect([status, json]).toEqual([200, { log, names: String(PROJECTS.length + 2) }]);
  const names = new Map(PROJECTS.map(({ id, name }) => [id, name]));
  for (const [name, ...columns] of [
    ["entries", "project_name", "runner_name"],
    ["monthly_project", "project_name"],
    ["monthly_hosted_runner", "project_name", "runner_name"],
  ] as const) {
    const bare = await fileOf((await madeExport(house, log, { name })).path);
    const rows = await fileOf((await madeExport(house, log, { name, names: true })).path);
    const added = ["namespace_name", ...columns];
    expect(Object.keys(rows[0] ?? {}).slice(-added.length)).toEqual(added);
    const project = rows.filter((row) => row["project_id"] !== "");
    expect(project.map((row) => row["project_name"])).toEqual(
      project.map((row) => names.get(row["project_id"] ?? "")),
    );
    expect(new Set(project.map((row) => row["namespace_name"]))).toEqual(new Set(["=2+2"]));
    const left = rows.map((row) => {
      return Object.fromEntries(Object.entries(row).filter(([key]) => !added.includes(key)));
    });
    expect(left).toEqual(bare);
  }
});

test("a name is in no byte of the log, and no entry is written for one", async () => {
  const size = await sealedSize(house, log);
  await put([{ kind: "project", id: "100", name: "not on the log" }]);
  expect(await sealedSize(house, log)).toBe(size);
  const found = await house.database.reader`
    select from entries where position('not on the log'::bytea in bytes) > 0`;
  expect(found).toEqual([]);
});

test("an erased name is gone with every file that may have it, and files made later are without it", async () => {
  const { id, path } = await madeExport(house, log, { name: "monthly_project", names: true });
  const plain = await madeExport(house, log, { name: "monthly_project" });
  const file = join(house.archive, "exports", log, `${id}.csv`);
  expect(existsSync(file)).toBe(true);
  const erase = () => ask(house, `DELETE /v1/names/${log}/project/101`, { token: platform });
  expect((await erase()).json).toEqual({ log, kind: "project", id: "101", erased: true });
  expect((await erase()).json).toMatchObject({ erased: false });
  const gone = async () => (await ask(house, `GET ${path}`, { token: finance })).status === 404;
  await vi.waitUntil(gone, { timeout: 20_000, interval: 200 });
  expect(existsSync(file)).toBe(false);
  expect((await ask(house, `GET ${plain.path}/file`, { token: finance })).status).toBe(200);
  house.clock.time += 61_000;
  const later = await fileOf(
    (await madeExport(house, log, { name: "monthly_project", names: true })).path,
  );
  const erased = later.find((row) => row["project_id"] === "101");
  expect(erased).toMatchObject({ project_name: "", namespace_name: "=2+2" });
});

test.each([
  ["no text", [{ kind: "project", id: "1", name: "" }]],
  ["a text that cannot be stored", [{ kind: "project", id: "1", name: "a\0b" }]],
  ["half a character", [{ kind: "project", id: "1", name: "\ud800" }]],
  ["more than a kilobyte", [{ kind: "project", id: "1", name: "ä".repeat(513) }]],
  ["a kind that there is not", [{ kind: "user", id: "1", name: "a" }]],
  ["one number of a kind twice", [1, 2].map((n) => ({ kind: "project", id: "1", name: `${n}` }))],
  ["more than a thousand", Array.from({ length: 1_001 }, (_, id) => nameOf(String(id)))],
  ["none", []],
])("names are refused, and none of them kept: %s", async (_, names) => {
  const { json, status } = await put([...names, ...(names.length === 1 ? [nameOf("999")] : [])]);
  expect([status, json["code"]]).toEqual([400, "invalid-request"]);
  const found = await house.database.reader`select from names where log = ${log} and id = 999`;
  expect(found).toEqual([]);
});

test("a thousand names of any length that is allowed fit in one request", async () => {
  const names = Array.from({ length: 1_000 }, (_, at) => {
    return { kind: "project", id: String(5_000 + at), name: "界".repeat(341) };
  });
  expect((await put(names)).status).toBe(200);
});

function nameOf(id: string): object {
  return { kind: "project", id, name: "a" };
}
