import { afterAll, beforeAll, expect, test } from "vitest";
import type { Role } from "../../src/flow/access/grant.ts";
import { type Answered, ask, everybody, sealedSize, tokenOf } from "./house.ts";
import { openServedLog, problem, type ServedLog } from "./served-log.ts";
import { readLog } from "./static-client.ts";

let house: ServedLog;

beforeAll(async () => {
  house = await openServedLog();
});

afterAll(() => house.close());

const NOBODYS = "f".repeat(32);
const HASHES = [
  "/logs/LOG/checkpoint",
  "/logs/LOG/checkpoint/FIRST",
  "/logs/LOG/tile/0/000",
  "/logs/LOG/tile/0/000.p/FIRST",
  "/logs/LOG/tile/1/000.p/1",
  "/v1/logs/LOG/checkpoints",
  "/v1/logs/LOG/proofs?index=7",
  "/v1/logs/LOG/consistency?from=7",
];
const ENTRIES = ["/logs/LOG/tile/entries/000", "/logs/LOG/tile/entries/000.p/FIRST"];
/** To whoever may read, each of them is told apart. */
const FAULTY = [
  "/logs/LOG/tile/0/0",
  "/logs/LOG/tile/0/999",
  "/logs/LOG/tile/entries/999",
  "/logs/LOG/checkpoint/9999",
  "/v1/logs/LOG/proofs",
  "/v1/logs/LOG/proofs?index=9999",
  "/v1/logs/LOG/consistency?from=0",
];

const fill = (path: string, log: string) =>
  path.replace("LOG", log).replace("FIRST", String(house.first));

const at = (path: string, token?: string, log = house.log): Promise<Answered> =>
  ask(house, `GET ${fill(path, log)}`, { token });

async function expectMissing(paths: readonly string[], token?: string): Promise<void> {
  for (const path of paths) {
    const answered = await at(path, token);
    const missing = await at(path, token, NOBODYS);
    expect([path, answered.status]).toEqual([path, 404]);
    expect(answered.text).toBe(missing.text);
    expect([...answered.headers.keys()]).toEqual([...missing.headers.keys()]);
  }
}

async function expectServed(paths: readonly string[], token?: string): Promise<void> {
  for (const path of paths) expect([path, (await at(path, token)).status]).toEqual([path, 200]);
}

/** The entry, once every process would know. */
async function setPublic(isPublic: boolean): Promise<Answered> {
  const token = await tokenOf(["operator"]);
  const set = `POST /v1/logs/${house.log}/visibility`;
  const answered = await ask(house, set, { token, json: { public: isPublic } });
  house.clock.time += 1_000;
  return answered;
}

test("auditors, and viewers of the whole log, read all of it", async () => {
  for (const role of ["auditor", "viewer"] as const) {
    const token = await tokenOf([role], { logs: [house.log] });
    await expectServed([...HASHES, ...ENTRIES], token);
  }
});

test("witnesses, and viewers of some namespaces, read what proves the log and no entry of it", async () => {
  const witness = await tokenOf(["witness"], { logs: [house.log] });
  const bound = await tokenOf(["viewer"], { logs: [house.log], namespaces: ["7"] });
  for (const token of [witness, bound]) {
    await expectServed(HASHES, token);
    await expectMissing(ENTRIES, token);
  }
});

test("what is malformed or beyond the checkpoint is said to those who may read", async () => {
  const codes = await Promise.all(FAULTY.map((path) => at(path, house.auditor).then(problem)));
  expect(codes).toEqual([
    [400, "invalid-tile"],
    [404, "beyond-checkpoint"],
    [404, "beyond-checkpoint"],
    [404, "beyond-checkpoint"],
    [400, "invalid-request"],
    [400, "invalid-request"],
    [400, "invalid-request"],
  ]);
});

test("to all others a restricted log is missing, whatever they ask of it", async () => {
  const everything = [...HASHES, ...ENTRIES, ...FAULTY];
  await expectMissing(everything);
  const others: Role[] = ["provisioner", "platform", "operator", "finance", "approver"];
  await expectMissing(everything, await tokenOf(others));
  const elsewhere = await tokenOf(["auditor", "witness", "viewer"], { logs: ["e".repeat(32)] });
  await expectMissing(everything, elsewhere);
});

test("a public log is read by anyone, and may lie in any cache", async () => {
  expect((await setPublic(true)).status).toBe(201);
  const size = Number(await sealedSize(house, house.log));
  const read = await readLog({ url: `${house.url}/logs/${house.log}` }, house.vkey);
  expect(read.size).toBe(size);
  await expectServed([...HASHES, ...ENTRIES]);
  await expectServed(ENTRIES, await tokenOf(["witness", "operator"]));
  const tile = await at("/logs/LOG/tile/entries/000");
  expect(tile.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
  const checkpoint = await at("/logs/LOG/checkpoint");
  expect(checkpoint.headers.get("cache-control")).toBe("public, max-age=2");
  const refused = await at("/logs/LOG/checkpoint", "expired");
  expect(problem(refused)).toEqual([401, "unauthenticated"]);
});

test("the usage of a public log is not public", async () => {
  for (const path of ["/v1/jobs/LOG/1", "/v1/usage?log=LOG", "/v1/logs/LOG/keys"]) {
    expect(problem(await at(path))).toEqual([401, "unauthenticated"]);
  }
});

test("publishing twice is one entry, and the newest entry counts", async () => {
  const again = await setPublic(true);
  expect(again.status).toBe(200);
  const restricted = await setPublic(false);
  expect(restricted.status).toBe(201);
  expect(Number(restricted.json["index"])).toBeGreaterThan(Number(again.json["index"]));
  await expectMissing([...HASHES, ...ENTRIES, ...FAULTY]);
  await expectServed([...HASHES, ...ENTRIES], house.auditor);
  expect((await setPublic(false)).status).toBe(200);
});

test("a log under two-person control is not made public by one", async () => {
  const token = await everybody();
  const body = { unique_id: "dual", platform: "dotcom", billing_from: "2026-01-01T00:00:00.000Z" };
  const dual = { ...body, control: "dual" };
  const { log } = (await ask(house, "POST /v1/logs", { token, json: dual })).json;
  const set = `POST /v1/logs/${log}/visibility`;
  const refused = await ask(house, set, { token, json: { public: true } });
  expect(problem(refused)).toEqual([409, "approval-required"]);
  for (const json of [{}, { public: "true" }, { public: true, by: "me" }]) {
    expect(problem(await ask(house, set, { token, json }))).toEqual([400, "invalid-request"]);
  }
});
