import { afterAll, beforeAll, expect, test } from "vitest";
import type { Checkpoint } from "../../src/core/checkpoint.ts";
import { decodeEntry } from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { verifyConsistency, verifyInclusion } from "../../src/core/proof.ts";
import { decodeBase64 } from "../../src/core/text.ts";
import { parseTlogProof, type TlogProof } from "../../src/core/tlog-proof.ts";
import { type Answered, ask, tokenOf } from "./house.ts";
import { openServedLog, type ServedLog } from "./served-log.ts";
import { openCheckpoint, readLog } from "./static-client.ts";

let house: ServedLog;
let entries: Uint8Array[];

beforeAll(async () => {
  house = await openServedLog();
  const prefix = { url: `${house.url}/logs/${house.log}`, token: house.auditor };
  ({ entries } = await readLog(prefix, house.vkey));
});

afterAll(() => house.close());

const get = (path: string, token = house.auditor): Promise<Answered> =>
  ask(house, `GET /v1/${path}`, { token });

/** What a customer does with a file: the log's key, and nothing else that the service says. */
function check(text: string, entry: Uint8Array): TlogProof {
  const proof = parseTlogProof(text);
  if (proof === undefined) throw new Error("no proof");
  const { size, root } = openCheckpoint(proof.checkpoint, house.vkey);
  const { index, hashes } = proof;
  const leaf = leafHash(entry);
  expect(verifyInclusion({ leaf, index, size, proof: hashes, root })).toBe(true);
  return proof;
}

const bytesOf = (base64 = "") => decodeBase64(base64) ?? new Uint8Array();

async function usagesOf(job: string, token?: string): Promise<Record<string, string>[]> {
  const { json } = await get(`jobs/${house.log}/${job}`, token);
  return json["usages"] as Record<string, string>[];
}

test("every entry is proven at every checkpoint that covers it", async () => {
  for (const size of [house.first, house.last]) {
    for (const index of [0, 1, 64, size - 2, size - 1]) {
      const answered = await get(`logs/${house.log}/proofs?index=${index}&size=${size}`);
      expect(answered.headers.get("content-type")).toBe("text/plain; charset=utf-8");
      const proof = check(answered.text, entries[index] ?? new Uint8Array());
      expect(proof.index).toBe(BigInt(index));
      expect(proof.extra).toBeUndefined();
      expect(openCheckpoint(proof.checkpoint, house.vkey).size).toBe(BigInt(size));
    }
  }
});

async function checkpointAt(size: number): Promise<Checkpoint> {
  const asked = `GET /logs/${house.log}/checkpoint/${size}`;
  return openCheckpoint((await ask(house, asked, { token: house.auditor })).text, house.vkey);
}

test("a log of one checkpoint is proven to begin with that of another", async () => {
  const older = await checkpointAt(house.first);
  const newer = await checkpointAt(house.last);
  const { json } = await get(`logs/${house.log}/consistency?from=${older.size}`);
  expect(json).toMatchObject({ from: String(older.size), to: String(newer.size) });
  const proof = (json["hashes"] as string[]).map(bytesOf);
  const sizes = { from: older.size, to: newer.size };
  const roots = { fromRoot: older.root, toRoot: newer.root };
  expect(verifyConsistency({ ...sizes, ...roots, proof })).toBe(true);
});

test("a build is shown with a proof that holds offline, with the entry in it", async () => {
  const [usage] = await usagesOf("1");
  const { extra, index } = check(usage?.["proof"] ?? "", bytesOf(usage?.["entry"]));
  const entry = decodeEntry(extra ?? new Uint8Array());
  expect(entry).toMatchObject({
    kind: "usage",
    index,
    log: house.log,
    body: { jws: usage?.["jws"] },
  });
});

test("L23: a proof from which any hash is left out, or altered, holds no more", async () => {
  const [usage] = await usagesOf("1");
  const { index, hashes, checkpoint, extra } = check(
    usage?.["proof"] ?? "",
    bytesOf(usage?.["entry"]),
  );
  const { size, root } = openCheckpoint(checkpoint, house.vkey);
  const place = { leaf: leafHash(extra ?? new Uint8Array()), index, size, root };
  expect(hashes.length).toBeGreaterThan(3);
  hashes.forEach((hash, i) => {
    const altered = hash.map((byte, at) => (at === i ? byte ^ 1 : byte));
    expect(verifyInclusion({ ...place, proof: hashes.with(i, altered) })).toBe(false);
    expect(verifyInclusion({ ...place, proof: hashes.toSpliced(i, 1) })).toBe(false);
  });
});

test("whoever sees one namespace proves its builds, and sees nothing of another's", async () => {
  const own = await tokenOf(["viewer"], { logs: [house.log], namespaces: ["7"] });
  const [usage] = await usagesOf("2", own);
  check(usage?.["proof"] ?? "", bytesOf(usage?.["entry"]));
  const blind = await tokenOf(["viewer"], { logs: [house.log], namespaces: ["8"] });
  const hidden = await get(`jobs/${house.log}/2`, blind);
  const missing = await get(`jobs/${house.log}/9999`, own);
  expect([hidden.status, hidden.text]).toEqual([404, missing.text]);
});

test("a build whose entry was altered since it was sealed is shown by nobody", async () => {
  const { superuser } = house.database;
  const [usage] = await usagesOf("3");
  const index = usage?.["index"] ?? "";
  await superuser.begin(async (tx) => {
    await tx`alter table entries disable trigger entries_append_only`;
    await tx`
      update entries set bytes = convert_to(replace(convert_from(bytes, 'UTF8'), 'small', 'large'), 'UTF8')
      where log = ${house.log} and index = ${index}`;
    await tx`alter table entries enable always trigger entries_append_only`;
  });
  const { status } = await get(`jobs/${house.log}/3`);
  expect(status).toBe(500);
  expect(house.logged.join("")).toContain(`entry ${index} is not in the tree of`);
});
