/** Exports over HTTP: who gets them, which bytes, and what is said when there are none. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { rename, writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { EXPORT_NAMES } from "../../src/core/export/tables.ts";
import { Statement } from "../../src/core/month/statement.ts";
import { parseManifest } from "../../src/flow/export/read.ts";
import { reported } from "../flow/door.ts";
import { ask, closedMonth, type House, newLog, openHouse, sealedSize, tokenOf } from "./house.ts";
import { type MadeExport, madeExport } from "./made-export.ts";

const BUILDS = 300;

let house: House;
let log: string;
let token: string;
let made: MadeExport;
/** All of the file, as it is answered to whoever asks for nothing less. */
let whole: string;
let etag: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log } = await newLog(house, "exports", 1));
  token = await tokenOf(["finance"]);
  const reports = Array.from({ length: BUILDS }, (_, i) => {
    return reported(1, log, { counter: String(i + 1), job: { id: String(i + 1) } });
  });
  await ask(house, "POST /v1/reports", { json: { reports } });
  await sealedSize(house, log);
  made = await madeExport(house, log);
  const answered = await ask(house, `GET ${made.path}/file`, { token });
  whole = answered.text;
  etag = answered.headers.get("etag") ?? "";
});
afterAll(() => house.close());

const fileBy = (headers: Record<string, string>) =>
  ask(house, `GET ${made.path}/file`, { token, headers });

test("the file is the one of its manifest, and is called by what is in it", async () => {
  const { json } = await ask(house, `GET ${made.path}/manifest`, { token });
  const hash = createHash("sha256").update(whole);
  expect(json).toMatchObject({ sha256: hash.copy().digest("base64"), bytes: `${whole.length}` });
  expect(etag).toBe(`"${hash.digest("hex")}"`);
  const { headers } = await ask(house, `HEAD ${made.path}/file`, { token });
  expect(Object.fromEntries(headers)).toMatchObject({
    "accept-ranges": "bytes",
    "cache-control": "no-store",
    "content-disposition": `attachment; filename="entries-${json["as_of"]}.csv"`,
    "content-length": String(whole.length),
    "content-type": "text/csv; charset=utf-8",
    "x-content-type-options": "nosniff",
    etag,
  });
});

test("a range gives just its bytes, and says of how many", async () => {
  const { headers, status, text } = await fileBy({ range: "bytes=1000-1999" });
  expect([status, text]).toEqual([206, whole.slice(1_000, 2_000)]);
  expect(headers.get("content-range")).toBe(`bytes 1000-1999/${whole.length}`);
  expect(headers.get("content-length")).toBe("1000");
  const rest = await fileBy({ range: "bytes=-7", "if-range": etag });
  expect([rest.status, rest.text]).toEqual([206, whole.slice(-7)]);
});

test("If-Range that names another file gives the whole of this one", async () => {
  const { status, text } = await fileBy({ range: "bytes=5-", "if-range": '"another"' });
  expect([status, text]).toEqual([200, whole]);
});

test("a range behind the end is 416, and says where the end is", async () => {
  const { headers, json, status } = await fileBy({ range: `bytes=${whole.length}-` });
  expect([status, json["code"]]).toEqual([416, "range-not-satisfiable"]);
  expect(headers.get("content-range")).toBe(`bytes */${whole.length}`);
});

test("a client that is cut off in the middle goes on from there to the same bytes", async () => {
  const authorization = `Bearer ${token}`;
  const request = get(`${house.url}${made.path}/file`, { headers: { authorization } });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const [first] = (await once(response, "data")) as [Buffer];
  const had = first.subarray(0, 5_000);
  request.destroy();
  const rest = await fileBy({ range: `bytes=${had.length}-`, "if-range": etag });
  expect(rest.status).toBe(206);
  expect(had.toString() + rest.text).toBe(whole);
});

test("exports are listed newest first, a page at a time", async () => {
  const { id } = await madeExport(house, log, { format: "ndjson" });
  const { json } = await ask(house, `GET /v1/exports?log=${log}`, { token });
  const ids = (json["exports"] as { id: string }[]).map((each) => each.id);
  expect(ids.slice(0, 2)).toEqual([id, made.id]);
  const none = await ask(house, `GET /v1/exports?log=${log}&before=1`, { token });
  expect(none.json["exports"]).toEqual([]);
});

test("to a viewer, and to another tenant's finance, there is none, as if there never was", async () => {
  const viewer = await tokenOf(["viewer"], { logs: [log], namespaces: ["7"] });
  const other = await tokenOf(["finance", "auditor"], { logs: ["f".repeat(32)] });
  for (const part of ["", "/manifest", "/manifest.note", "/file"]) {
    const missing = await ask(house, `GET /v1/exports/${"f".repeat(32)}/${made.id}${part}`, {
      token: other,
    });
    for (const stranger of [viewer, other]) {
      const answered = await ask(house, `GET ${made.path}${part}`, { token: stranger });
      expect([answered.status, answered.text]).toEqual([404, missing.text]);
    }
  }
  const portal = await tokenOf(["portal"], { logs: [log] });
  expect((await ask(house, `GET ${made.path}/file`, { token: portal })).status).toBe(200);
});

test("each read of a file is in the access log, with who and which", async () => {
  const auditor = await tokenOf(["auditor"], { logs: [log] });
  await ask(house, `GET ${made.path}/file`, { token: auditor, headers: { range: "bytes=0-9" } });
  const [row] = await house.database.reader`
    select roles, target, status from access_log
    where log = ${log} and route = '/v1/exports/:log/:export/file'
    order by at desc, number desc
    limit 1`;
  expect(row).toEqual({ roles: "auditor", target: `${made.path}/file`, status: 206 });
});

test("the files of a closed month are made by the service itself, to the hashes that the statement has", async () => {
  const { exports } = Statement.parse(JSON.parse(await closedMonth(house, log, "2026-10-01")));
  const manifests = await vi.waitUntil(
    async () => {
      const rows = await house.database.reader<{ manifest: string }[]>`
        select manifest from exports where log = ${log} and kept and state = 'done' order by name`;
      return rows.length === exports.length && rows.map(({ manifest }) => parseManifest(manifest));
    },
    { timeout: 40_000, interval: 200 },
  );
  expect(manifests.map(({ name, rows, sha256 }) => ({ name, rows, sha256 }))).toEqual(exports);
});

test("each file can be asked for as of the first entry, which nothing has followed yet", async () => {
  const monthly: readonly string[] = ["allocation", "focus", "pack_rollforward", "portal"];
  const files = EXPORT_NAMES.map((name) => {
    const month = monthly.includes(name) && { month: "2026-10-01" };
    return madeExport(house, log, { name, as_of: "1", ...month });
  });
  const paths = (await Promise.all(files)).map(({ path }) => path);
  const rows = paths.map(async (path) => {
    const { json } = await ask(house, `GET ${path}/manifest`, { token });
    return [json["name"], json["rows"]];
  });
  const empty = EXPORT_NAMES.filter((name) => name !== "entries").map((name) => [name, "0"]);
  expect(await Promise.all(rows)).toEqual(expect.arrayContaining([["entries", "1"], ...empty]));
});

test("what failed says why, and can be asked for again", async () => {
  const { id, path } = await madeExport(house, log);
  await house.database.writer`
    update exports set state = 'failed', manifest = null, error = 'no-room' where id = ${id}`;
  for (const part of ["/manifest", "/manifest.note", "/file"]) {
    const { json, status } = await ask(house, `GET ${path}${part}`, { token });
    expect([status, json["code"], json["error"]]).toEqual([409, "export-failed", "no-room"]);
  }
  expect((await ask(house, `GET ${path}`, { token })).json["error"]).toBe("no-room");
  await house.database.writer`update exports set error = 'no-account' where id = ${id}`;
  const mendable = await ask(house, `GET ${path}/file`, { token });
  expect([mendable.json["code"], mendable.json["error"]]).toEqual(["no-account", "no-account"]);
});

test("where files cannot be reached it says so; one that is gone is missing", async () => {
  const exports = join(house.archive, "exports");
  const { id, path } = await madeExport(house, log);
  await rename(join(exports, log), join(exports, "aside"));
  await writeFile(join(exports, log), "no folder");
  const away = await ask(house, `GET ${path}/file`, { token });
  expect([away.status, away.json["code"]]).toEqual([503, "exports-unavailable"]);
  await rename(join(exports, log), join(exports, "file"));
  await rename(join(exports, "aside"), join(exports, log));
  await rename(join(exports, log, `${id}.csv`), join(exports, log, "elsewhere"));
  expect((await ask(house, `GET ${path}/file`, { token })).status).toBe(404);
});

test("what is not sealed yet, and what does not fit, is refused at once", async () => {
  const asked = { log, name: "entries", format: "csv" };
  const beyond = { ...asked, as_of: "999999" };
  const { json, status } = await ask(house, "POST /v1/exports", { token, json: beyond });
  expect([status, json["code"]]).toEqual([409, "not-sealed"]);
  for (const [more, members] of [
    [{ month: "2026-11-01" }, ["month"]],
    [{ format: "xlsx" }, ["format"]],
    [{ name: "portal" }, ["month"]],
    [{ as_of: "0" }, ["as_of"]],
    [{ name: "portal", month: "2026-10-01", credit_minutes: "0" }, ["credit_minutes"]],
  ] as const) {
    const refused = await ask(house, "POST /v1/exports", { token, json: { ...asked, ...more } });
    expect([refused.status, refused.json["members"]]).toEqual([400, members]);
  }
});
