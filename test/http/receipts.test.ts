/** Proofs for whoever has a receipt, and for nobody else. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { thumbprint } from "../../src/core/ed25519.ts";
import { decodeEntry } from "../../src/core/entry.ts";
import { leafHash } from "../../src/core/hash.ts";
import { signedCompact } from "../../src/core/jws.ts";
import { formatVkey, openNote, parseVkey } from "../../src/core/note.ts";
import { verifyConsistency, verifyInclusion } from "../../src/core/proof.ts";
import { type ReceiptResult, readReceipt, receiptInput } from "../../src/core/receipt.ts";
import { TYP } from "../../src/core/report.ts";
import { decodeBase64, encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { NOW } from "../core/history.ts";
import { reported, sign } from "../flow/door.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import { type Answered, ask, type House, newLog, openHouse, sealedSize } from "./house.ts";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

interface Batch {
  receipt: string;
  results: ReceiptResult[];
}

async function submitted(log: string, seed: number, jobs: readonly number[]): Promise<Batch> {
  const reports = jobs.map((job) =>
    reported(seed, log, { counter: String(job), job: { id: String(job) } }),
  );
  const { json } = await ask(house, "POST /v1/reports", { json: { reports } });
  const { receipt, results } = json as unknown as Batch;
  return { receipt, results };
}

function prove(json: object): Promise<Answered> {
  return ask(house, "POST /v1/receipts/prove", { json });
}

interface Proof {
  index: string;
  entry: string;
  hashes: string[];
}

interface Kept {
  checkpoint: string;
  proofs: Proof[];
  consistency?: string[];
  keys: Proof[];
}

function bytes(base64: string): Uint8Array {
  const decoded = decodeBase64(base64);
  if (decoded === undefined) throw new Error("no base64");
  return decoded;
}

/** As an agent reads it: nothing counts that is not under the checkpoint of the key it knows. */
function opened(log: string, { checkpoint }: Kept) {
  const vkey = parseVkey(formatVkey(`minutebook.localhost/${log}`, testKey(32).publicKey));
  const note = openNote(checkpoint, vkey ? [vkey] : [], verifyByOpenssl);
  const tree = "text" in note ? parseCheckpoint(note.text) : undefined;
  if (tree === undefined) throw new Error("no checkpoint of ours");
  return tree;
}

function holds(tree: { size: bigint; root: Uint8Array }, proof: Proof, leaf: Uint8Array): boolean {
  const { size, root } = tree;
  return verifyInclusion({
    leaf,
    index: BigInt(proof.index),
    size,
    proof: proof.hashes.map(bytes),
    root,
  });
}

test("each result of a receipt is proven as soon as the published checkpoint covers it, and not before", async () => {
  const { log } = await newLog(house, "proven", 1);
  const early = await submitted(log, 1, [1, 2, 3]);
  await sealedSize(house, log);
  const first = (await prove(early)).json as unknown as Kept;
  const since = opened(log, first);
  expect(first.proofs.map(({ index }) => index)).toEqual(early.results.map(({ index }) => index));
  for (const [i, { leaf = "" }] of early.results.entries()) {
    expect(holds(since, first.proofs[i] as Proof, bytes(leaf))).toBe(true);
    expect(holds(since, first.proofs[i] as Proof, bytes(early.results[i - 1]?.leaf ?? leaf))).toBe(
      i === 0,
    );
  }
  expect(first).not.toHaveProperty("consistency");

  // The same job again, in a receipt of its own: one index, promised twice, proven once.
  const late = await submitted(log, 1, [3, 4, 5, 6, 7]);
  const both = { ...(await submitted(log, 1, [1, 3, 1])), since: String(since.size) };
  expect((await prove(both)).json["proofs"]).toHaveLength(2);
  await sealedSize(house, log);
  const second = (await prove({ ...late, since: String(since.size) })).json as unknown as Kept;
  const tree = opened(log, second);
  expect(tree.size).toBe(since.size + 4n);
  expect(
    verifyConsistency({
      from: since.size,
      to: tree.size,
      proof: (second.consistency ?? []).map(bytes),
      fromRoot: since.root,
      toRoot: tree.root,
    }),
  ).toBe(true);
});

test("with each proof comes the entry: its leaf is the promised one, and it is what the code says", async () => {
  const { log } = await newLog(house, "entries", 6);
  const reports = [
    reported(6, log, { counter: "1" }),
    reported(6, log, { counter: "2" }),
    reported(6, log, { counter: "3", usage: { duration_ms: "61000" } }),
    reported(6, log, { counter: "4", uuid: "0d4c5f57-6d2b-4c7c-a5ad-7f3a0f1d2c3b" }),
    sign(6, TYP.report, { counter: "5", log }),
  ];
  const { json } = await ask(house, "POST /v1/reports", { json: { reports } });
  const { receipt, results } = json as unknown as Batch;
  await sealedSize(house, log);
  const { proofs } = (await prove({ receipt, results })).json as unknown as Kept;
  const shown = results.map(({ code, index, leaf }) => {
    const entry = proofs.find((proof) => proof.index === index)?.entry;
    if (entry === undefined) return [code, index];
    expect(encodeBase64(leafHash(bytes(entry)))).toBe(leaf);
    const decoded = decodeEntry(bytes(entry));
    if (typeof decoded === "string" || !("jws" in decoded.body)) throw new Error("no report");
    return [code, decoded.kind, reports.indexOf(decoded.body.jws)];
  });
  expect(shown).toEqual([
    ["accepted", "usage", 0],
    ["duplicate", "usage", 0],
    ["conflict", "conflict", 2],
    ["outside-enrolment", "hold", 3],
    ["schema", undefined],
  ]);
});

test("an entry that no checkpoint covers has no proof yet", async () => {
  const { log } = await newLog(house, "pending", 2);
  const before = await sealedSize(house, log);
  const pending = await house.database.owner.begin(async (tx) => {
    // Whoever seals passes over a log that is being sealed.
    await tx`select from seals where log = ${log} for update`;
    const given = await submitted(log, 2, [1]);
    const { json } = await prove(given);
    expect(opened(log, json as unknown as Kept).size).toBe(BigInt(before));
    expect(json["proofs"]).toEqual([]);
    return given;
  });
  await sealedSize(house, log);
  expect((await prove(pending)).json["proofs"]).toHaveLength(1);
});

test("the log's keys come with their proofs, so that one who trusts a key learns the next", async () => {
  const { log, token } = await newLog(house, "keys", 3);
  const given = await submitted(log, 3, [1]);
  const path = `/v1/logs/${log}/log_keys`;
  const vkey = formatVkey(`minutebook.localhost/${log}`, testKey(34).publicKey);
  const json = { purpose: "checkpoint", state: "added", vkey };
  expect((await ask(house, `POST ${path}`, { token, json })).status).toBe(201);
  expect((await ask(house, `POST ${path}`, { token, json })).status).toBe(200);
  await sealedSize(house, log);
  const kept = (await prove(given)).json as unknown as Kept;
  const [key] = kept.keys;
  if (key === undefined) throw new Error("no key");
  const entry = decodeEntry(bytes(key.entry));
  expect(entry).toMatchObject({ kind: "log_key", index: BigInt(key.index), body: json });
  expect(holds(opened(log, kept), key, leafHash(bytes(key.entry)))).toBe(true);
});

test("a receipt that is not this service's, or not of just these results, is none", async () => {
  const { log } = await newLog(house, "forged", 4);
  const given = await submitted(log, 4, [1, 2]);
  await sealedSize(house, log);
  const key = testKey(35);
  const statement = { issued_at: NOW, log, origin: `minutebook.localhost/${log}` };
  const input = receiptInput(thumbprint(key.publicKey), statement, given.results);
  const forged = signedCompact(input, key.sign(encodeUtf8(input)));
  const [one, two] = given.results as [ReceiptResult, ReceiptResult];
  for (const json of [
    { ...given, receipt: forged },
    { ...given, receipt: reported(4, log) },
    { ...given, receipt: "x" },
    { ...given, results: [one] },
    { ...given, results: [two, one] },
    { ...given, results: [one, { ...two, index: "1" }] },
  ]) {
    const { status, json: problem } = await prove(json);
    expect([status, problem["code"]]).toEqual([422, "invalid-receipt"]);
  }
});

test("more than 500 results, or a body without a shape, is not looked at", async () => {
  const result = { code: "accepted", digest: "A".repeat(43).concat("=") };
  const results = Array.from({ length: 501 }, () => result);
  for (const json of [{ receipt: "x", results }, { receipt: "x", results: [] }, { results: [] }]) {
    expect((await prove(json)).json).toMatchObject({ status: 400, code: "invalid-request" });
  }
});

test("of a log where its key is not enrolled an agent learns nothing, not even that there is one", async () => {
  const { log: home } = await newLog(house, "home", 5);
  const { log: foreign } = await newLog(house, "foreign", 6);
  const answers = [];
  for (const [i, named] of [foreign, "e".repeat(32)].entries()) {
    const reports = [reported(5, named, { counter: String(i + 1) })];
    const { json } = await ask(house, "POST /v1/reports", { json: { reports } });
    const { log, receipt, results } = json as unknown as Batch & { log: string };
    expect([log, results[0]?.code]).toEqual([home, "wrong-log"]);
    expect(readReceipt(receipt)?.payload).toMatchObject({ log: home });
    const proven = await prove({ receipt, results, since: "1" });
    const { code } = proven.json;
    const shown = [Object.keys(json), Object.keys(results[0] ?? {}), proven.status, code];
    answers.push(shown);
  }
  expect(answers[0]).toEqual(answers[1]);
  expect(answers[0]?.slice(2)).toEqual([404, "not-found"]);
  const single = await ask(house, "POST /v1/reports", { jose: reported(5, foreign) });
  expect(single.json).toMatchObject({ code: "wrong-log", log: home });
});

test("a receipt has no index but of its own log, also where the keys of a request are at home in two", async () => {
  const { log } = await newLog(house, "two homes", 7);
  await newLog(house, "the other home", 8);
  const reports = [reported(8, log), reported(7, log)];
  const { json } = await ask(house, "POST /v1/reports", { json: { reports } });
  const [wrong, accepted] = (json as unknown as Batch).results;
  expect(json["log"]).toBe(log);
  expect(wrong).toEqual({ code: "wrong-log", digest: expect.any(String), counter: "1" });
  expect(accepted).toMatchObject({ code: "accepted", index: expect.any(String) });
});

test("a receipt without an index is answered no checkpoint, no keys and no proofs", async () => {
  const { log } = await newLog(house, "no promise", 9);
  await sealedSize(house, log);
  const reports = [sign(9, TYP.report, { log })];
  const { json } = await ask(house, "POST /v1/reports", { json: { reports } });
  const { receipt, results } = json as unknown as Batch;
  expect(results[0]).toEqual({ code: "schema", digest: expect.any(String) });
  const { status, json: problem } = await prove({ receipt, results, since: "1" });
  expect([status, problem["code"]]).toEqual([404, "not-found"]);
});
