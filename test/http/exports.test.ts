/** Exports over HTTP: who gets them, which bytes, and what is said when there are none. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { readFile, rename, writeFile } from "node:fs/promises";
import { get, type IncomingMessage } from "node:http";
import { connect, Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest";
import { readConfig } from "../../src/config.ts";
import { EXPORT_NAMES } from "../../src/core/export/tables.ts";
import { Statement } from "../../src/core/month/statement.ts";
import { parseManifest } from "../../src/flow/export/read.ts";
import { openStreams } from "../../src/http/streams.ts";
import { reported } from "../flow/door.ts";
import { prices } from "../format/focus/sample.ts";
import {
  ask,
  beside,
  closedMonth,
  everybody,
  type House,
  newLog,
  openHouse,
  SINCE_NOVEMBER,
  sealedSize,
  tokenOf,
} from "./house.ts";
import { grown, type MadeExport, madeExport } from "./made-export.ts";

const BUILDS = 300;
const PRICES = prices();

let house: House;
let log: string;
let token: string;
let made: MadeExport;
/** All of the file, as it is answered to whoever asks for nothing less. */
let whole: string;
let etag: string;

beforeAll(async () => {
  house = await openHouse({ exports: { ...readConfig({}).exports, prices: PRICES } });
  ({ log } = await newLog(house, "exports", 1, SINCE_NOVEMBER));
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

test("a HEAD takes no notice of a range: it is of the whole file", async () => {
  for (const range of ["bytes=5-9", `bytes=${whole.length}-`]) {
    const { headers, status } = await ask(house, `HEAD ${made.path}/file`, {
      ...{ token, headers: { range } },
    });
    expect([status, headers.get("content-length")]).toEqual([200, String(whole.length)]);
    expect(headers.get("content-range")).toBeNull();
  }
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

test("a file that was altered where it is kept has no end, and is made again", async () => {
  const { id, path } = await madeExport(house, log);
  const file = join(house.archive, "exports", log, `${id}.csv`);
  const made = await readFile(file, "utf8");
  await writeFile(file, made.replace(",hosted,", ",HOSTED,"));
  await expect(ask(house, `GET ${path}/file`, { token })).rejects.toThrow();
  const again = async () => (await ask(house, `GET ${path}/file`, { token })).text === made;
  await vi.waitUntil(again, { timeout: 20_000, interval: 100 });
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

test("a FOCUS file that is asked for has money by the price list that the service was given, and names it", async () => {
  const account = {
    ...{ account_id: "A-1", subscription_id: "S-1", source: "crm", source_version: "1" },
    effective_from: "2026-01-01T00:00:00.000Z",
  };
  const by = await everybody();
  expect((await ask(house, `PUT /v1/accounts/${log}`, { token: by, json: account })).status).toBe(
    201,
  );
  await sealedSize(house, log);
  const month = "2026-11-01";
  const { path } = await madeExport(house, log, { name: "focus", month });
  const { json } = await ask(house, `GET ${path}/manifest`, { token });
  const parameters = { focus_version: "1.2", month, prices_sha256: PRICES.sha256 };
  expect(json).toMatchObject({ parameters, totals: { ListCost: "3.0000000000000000" } });
  const { headers } = await ask(house, `HEAD ${path}/file`, { token });
  expect(headers.get("content-disposition")).toMatch(/-priced-[0-9a-f]{8}[.]csv"$/);
});

/** Asks one after the other over a connection of its own, and reads nothing of what is answered. */
function stalled(url: string, ...asked: [path: string, accept: string][]): void {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined).pause();
  for (const [path, accept] of asked) {
    const headers = ["host: x", `authorization: Bearer ${token}`, `accept: ${accept}`];
    socket.write(`GET ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
  }
}

test("whoever reads nothing of a file, or of a stream, is let go, and a stream's place is given back", async () => {
  const streams = openStreams(300);
  const sockets: Socket[] = [];
  let reader = "";
  const bounded = await beside(
    house,
    undefined,
    {},
    {
      ...streams,
      open: (id, socket) => {
        reader = id;
        sockets.push(socket);
        return streams.open(id, socket);
      },
      watch: (socket) => {
        sockets.push(socket);
        streams.watch(socket);
      },
    },
  );
  const { id, path } = await madeExport(house, log);
  // More than lies on its way between two processes.
  await grown(house, log, id, 64 * 1024 * 1024);
  stalled(bounded.url, [`${path}/file`, "*/*"]);
  // Nothing of it goes out before what was asked for first is answered, and that waits.
  const feed = `/v1/feed?log=${log}&wait_s=30`;
  const beyond = `${feed}&cursor=${await sealedSize(house, log)}`;
  stalled(bounded.url, [beyond, "application/json"], [feed, "application/x-ndjson"]);
  const isOver = () => sockets.length === 2 && sockets.every(({ closed }) => closed);
  await vi.waitUntil(isOver, { timeout: 20_000 });
  const places = Array.from({ length: 20 }, () => streams.open(reader, new Socket()));
  for (const { done } of places) done();
});
