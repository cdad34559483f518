import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decodeBundle } from "../../src/core/bundle.ts";
import { decodeEntry } from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { naiveRoot } from "../core/merkle.ts";
import { type Answered, ask } from "./house.ts";
import { openServedLog, problem, type ServedLog } from "./served-log.ts";
import { fetchFile, openCheckpoint, type Prefix, type ReadLog, readLog } from "./static-client.ts";

let house: ServedLog;
let log: string;
let prefix: Prefix;
let read: ReadLog;

beforeAll(async () => {
  house = await openServedLog();
  ({ log } = house);
  prefix = { url: `${house.url}/logs/${log}`, token: house.auditor };
  read = await readLog(prefix, house.vkey);
});

afterAll(() => house.close());

const get = (path: string): Promise<Answered> =>
  ask(house, `GET /logs/${log}/${path}`, { token: house.auditor });

/** Headers and bytes as they came: fetch would undo the coding. */
async function raw(
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<{ response: IncomingMessage; body: Buffer }> {
  const authorization = `Bearer ${house.auditor}`;
  const asking = request(`${prefix.url}/${path}`, {
    method,
    headers: { authorization, ...headers },
  });
  asking.end();
  const [response] = (await once(asking, "response")) as [IncomingMessage];
  return { response, body: Buffer.concat(await response.toArray()) };
}

test("a client that knows only tlog-tiles reads the whole log and comes to the signed root", () => {
  expect(read.size).toBe(house.last);
  const kinds = read.entries.map((bytes) => decodeEntry(bytes));
  expect(kinds.filter((entry) => typeof entry === "object" && entry.kind === "usage")).toHaveLength(
    300,
  );
});

const partial = () => `tile/entries/001.p/${house.last - 256}`;

test("a checkpoint is text that is fresh for seconds", async () => {
  for (const path of ["checkpoint", `checkpoint/${house.first}`]) {
    const { headers } = await get(path);
    expect(headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(headers.get("cache-control")).toBe("private, max-age=2");
  }
});

test("tiles and bundles are bytes for ever, and of a restricted log for no shared cache", async () => {
  for (const path of ["tile/0/000", `tile/1/000.p/1`, "tile/entries/000", partial()]) {
    const { headers } = await get(path);
    expect(headers.get("content-type")).toBe("application/octet-stream");
    expect(headers.get("cache-control")).toBe("private, max-age=31536000, immutable");
  }
});

test("bundles are compressed for those who take gzip, and are the same bytes", async () => {
  const plain = await raw("GET", partial());
  expect(plain.response.headers["content-encoding"]).toBeUndefined();
  for (const accepted of ["gzip", "br, gzip;q=0.5", "GZIP"]) {
    const packed = await raw("GET", partial(), { "accept-encoding": accepted });
    expect(packed.response.headers["content-encoding"]).toBe("gzip");
    expect(gunzipSync(packed.body)).toEqual(plain.body);
    expect(packed.body.length).toBeLessThan(plain.body.length / 2);
  }
  for (const refused of ["gzip;q=0", "br", "identity", "*;q=0"]) {
    const same = await raw("GET", partial(), { "accept-encoding": refused });
    expect(same.response.headers["content-encoding"]).toBeUndefined();
    expect(same.body).toEqual(plain.body);
  }
  expect(plain.response.headers["vary"]).toBe("accept-encoding");
});

test("hash tiles are not: hashes cannot be compressed", async () => {
  const { response } = await raw("GET", "tile/0/000", { "accept-encoding": "gzip" });
  expect(response.headers["content-encoding"]).toBeUndefined();
  expect(response.headers["vary"]).toBeUndefined();
});

test("HEAD is answered like GET, without the body", async () => {
  for (const path of ["checkpoint", "tile/0/000", "tile/entries/000"]) {
    const { response, body } = await raw("HEAD", path);
    const whole = await raw("GET", path);
    expect([response.statusCode, body.length]).toEqual([200, 0]);
    for (const name of ["content-type", "content-length", "cache-control", "vary"]) {
      expect(response.headers[name]).toBe(whole.response.headers[name]);
    }
  }
  expect((await raw("HEAD", "tile/0/999")).response.statusCode).toBe(404);
});

test("checkpoints that came before are kept, with the tiles that they imply", async () => {
  const { sizes } = (await ask(house, `GET /v1/logs/${log}/checkpoints`, { token: house.auditor }))
    .json;
  expect(sizes).toContain(String(house.first));
  expect(sizes).toContain(String(house.last));
  const { size, root } = openCheckpoint((await get(`checkpoint/${house.first}`)).text, house.vkey);
  const leaves = read.entries.slice(0, house.first).map((entry) => leafHash(entry));
  expect([size, root]).toEqual([BigInt(house.first), naiveRoot(leaves)]);
  const prefix = { url: `${house.url}/logs/${log}`, token: house.auditor };
  const bundle = decodeBundle(await fetchFile(prefix, `tile/entries/000.p/${house.first}`));
  expect(bundle?.map((entry) => leafHash(entry))).toEqual(leaves);
});

test("their sizes are listed a page at a time", async () => {
  const page = async (query: string) =>
    (await ask(house, `GET /v1/logs/${log}/checkpoints?${query}`, { token: house.auditor })).json;
  const all = (await page("")) as { sizes: string[] };
  expect(all).not.toHaveProperty("next");
  const found: unknown[] = [];
  for (let next: unknown = "0"; next !== undefined; ) {
    const answered = (await page(`limit=1&after=${next}`)) as { sizes: string[]; next?: string };
    found.push(...answered.sizes);
    next = answered.next;
  }
  expect(found).toEqual(all.sizes);
  for (const query of ["limit=0", "limit=1001", "limit=01", "after=-1", "after=x", "more=1"]) {
    const refused = await ask(house, `GET /v1/logs/${log}/checkpoints?${query}`, {
      token: house.auditor,
    });
    expect(problem(refused)).toEqual([400, "invalid-request"]);
  }
});
