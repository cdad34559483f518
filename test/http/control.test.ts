import { afterAll, beforeAll, expect, test } from "vitest";
import { formatVkey } from "../../src/core/note.ts";
import { TYP } from "../../src/core/report.ts";
import { jwk, kidOf, NOW, RUNNER } from "../core/history.ts";
import { claimOf, entriesOf, ofKind, reported, sign } from "../flow/door.ts";
import { testKey } from "../signing.ts";
import {
  ask,
  cardBody,
  everybody,
  type House,
  newAgent,
  newLog,
  openHouse,
  rotationOf,
} from "./house.ts";

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "control", 1));
});

afterAll(() => house.close());

const LATER = "2027-01-01T00:00:00.000Z";

const post = (path: string, json: object) => ask(house, `POST ${path}`, { token, json });

async function enrolment(body: object = {}): Promise<string> {
  const line = { ...RUNNER, uuid: crypto.randomUUID() };
  const answer = await post("/v1/enrolments", { log, namespaces: [], runners: [line], ...body });
  return String(answer.json["token"]);
}

test("a log is made once for an instance, and answered with the keys that verify it", async () => {
  const body = { unique_id: "once", platform: "dedicated", billing_from: NOW };
  const made = await post("/v1/logs", body);
  expect(made.status).toBe(201);
  const { log: id, origin, vkey, receipt_vkey } = made.json;
  expect(origin).toBe(`minutebook.localhost/${id}`);
  expect(vkey).toBe(formatVkey(`minutebook.localhost/${id}`, testKey(32).publicKey));
  expect(receipt_vkey).toBe(
    formatVkey(`minutebook.localhost/${id}/receipt`, testKey(33).publicKey),
  );
  expect(await post("/v1/logs", body)).toMatchObject({
    status: 409,
    json: { code: "log-exists", log: id },
  });
  const [genesis] = await entriesOf(house.database.reader, String(id));
  expect(genesis).toMatchObject({
    kind: "log",
    body: { control: "single", skew_ms: "300000", duration_cap_ms: "2678400000" },
  });
});

test("a claim that comes again gets the same answer, and its key another enrolment not", async () => {
  const secret = await enrolment();
  const claim = { token: secret, claim: claimOf(11, log, secret) };
  const first = await ask(house, "POST /v1/enrolments/claim", { json: claim });
  const again = await ask(house, "POST /v1/enrolments/claim", { json: claim });
  expect([first.status, again.status]).toEqual([201, 200]);
  expect(again.text).toBe(first.text);
  expect(first.json).toMatchObject({
    log,
    kid: kidOf(11),
    platform: "dotcom",
    unique_id: "control",
  });

  const other = await enrolment();
  const used = { token: other, claim: claimOf(11, log, other) };
  expect((await ask(house, "POST /v1/enrolments/claim", { json: used })).json["code"]).toBe(
    "key-in-use",
  );
});

test("a token is good for one key, for its time, and for the log that it is of", async () => {
  const claimed = async (seed: number, secret: string, of = log): Promise<unknown> => {
    const claim = { token: secret, claim: claimOf(seed, of, secret) };
    return (await ask(house, "POST /v1/enrolments/claim", { json: claim })).json["code"];
  };
  const secret = await enrolment();
  expect(await claimed(12, "made up")).toBe("unknown-token");
  expect(await claimed(12, secret, "0".repeat(32))).toBe("unknown-token");
  expect(await claimed(12, secret)).toBe(undefined);
  expect(await claimed(13, secret)).toBe("token-used");

  const short = await enrolment({ claim_seconds: 60 });
  house.clock.time += 61_000;
  expect(await claimed(14, short)).toBe("token-expired");
});

test("a key of small order cannot be claimed, whatever its signature", async () => {
  const secret = await enrolment();
  // The identity: any signature of the right form verifies under it.
  const x = Buffer.from([1, ...new Uint8Array(31)]).toString("base64url");
  const { createHash } = await import("node:crypto");
  const members = `{"crv":"Ed25519","kty":"OKP","x":"${x}"}`;
  const kid = createHash("sha256").update(members).digest("base64url");
  const [, payload = "", signature] = claimOf(15, log, secret).split(".");
  const text = Buffer.from(payload, "base64url").toString().replace(jwk(15).x, x);
  const header = `{"alg":"Ed25519","kid":"${kid}","typ":"${TYP.claim}"}`;
  const part = (value: string) => Buffer.from(value).toString("base64url");
  const claim = [part(header), part(text), signature].join(".");
  const answer = await ask(house, "POST /v1/enrolments/claim", { json: { token: secret, claim } });
  expect([answer.status, answer.json["code"]]).toEqual([422, "inadmissible-key"]);
});

test("a runner keeps its tracking, and group runners name their namespaces", async () => {
  const line = { ...RUNNER, tracking: "self_managed", effective_from: LATER };
  const twice = await post("/v1/enrolments", { log, namespaces: [], runners: [line] });
  expect([twice.status, twice.json["code"]]).toEqual([409, "two-trackings"]);
  const group = { ...RUNNER, uuid: "group", runner_type: "group" };
  const unbound = await post("/v1/enrolments", { log, namespaces: [], runners: [group] });
  expect([unbound.status, unbound.json["code"]]).toEqual([422, "namespaces-needed"]);
});

test("a rotation names the successor once, and is repeated with the same answer", async () => {
  const secret = await enrolment();
  const first = { token: secret, claim: claimOf(16, log, secret) };
  await ask(house, "POST /v1/enrolments/claim", { json: first });
  const json = {
    rotation: rotationOf(16, 17, log, "5"),
    claim: claimOf(17, log, secret),
  };
  const rotated = await ask(house, "POST /v1/keys/rotate", { json });
  expect(rotated).toMatchObject({ status: 201, json: { log, kid: kidOf(17) } });
  const again = await ask(house, "POST /v1/keys/rotate", { json });
  expect([again.status, again.text]).toEqual([200, rotated.text]);

  const another = { rotation: rotationOf(16, 18, log, "5"), claim: claimOf(18, log, secret) };
  const ended = await ask(house, "POST /v1/keys/rotate", { json: another });
  expect([ended.status, ended.json["code"]]).toEqual([409, "key-has-ended"]);
});

test("a key that is not on the log cannot be ended, and none twice at the same counter", async () => {
  const json = { log, last_trusted_counter: "0", reason: "leaked" };
  expect((await post(`/v1/keys/${kidOf(200)}/revoke`, json)).json["code"]).toBe("not-found");
  expect((await post("/v1/keys/short/revoke", json)).json["code"]).toBe("not-found");
  await newAgent(house, log, 19, { uuid: "ended" });
  const path = `/v1/keys/${kidOf(19)}/revoke`;
  expect((await post(path, json)).status).toBe(201);
  expect((await post(path, json)).json["code"]).toBe("key-has-ended");
});

test("an attestation becomes an entry, and a report is none", async () => {
  const attestation = {
    clock_offset_ms: "-3",
    counter: "7",
    files: [],
    issued_at: NOW,
    log,
    malformed: "0",
    rejected: "0",
    spool: "0",
  };
  const jose = sign(1, TYP.attestation, attestation);
  const answer = await ask(house, "POST /v1/attestations", { jose });
  expect(answer).toMatchObject({ status: 201, json: { log, index: expect.any(String) } });
  const found = ofKind(await entriesOf(house.database.reader, log), "attestation");
  expect(found.map(({ body }) => body.jws)).toEqual([jose]);
  const report = await ask(house, "POST /v1/attestations", { jose: reported(1, log) });
  expect([report.status, report.json["code"]]).toEqual([422, "wrong-typ"]);
});

const CLASS = { project_id: "50", class: "open_source", effective_from: NOW, source: "gitlab" };
const QUOTA = {
  beyond: "stop",
  effective_from: NOW,
  monthly_minutes: "400",
  source: "gitlab",
  source_version: "3",
};
const PACK = { namespace_id: "7", pack_id: "order-1", minutes: "5000", source: "portal" };

test("rates, classes, limits and packs are entries that name who wrote them, and no name of a person", async () => {
  house.clock.time += 1_000;
  const cards = `/v1/logs/${log}/rate_cards`;
  const later = { ...cardBody(), effective_from: LATER };
  for (const [asked, json] of [
    [`POST ${cards}`, later],
    [`POST /v1/logs/${log}/project_classes`, CLASS],
    [`PUT /v1/quotas/${log}/7`, QUOTA],
    ["POST /v1/packs", { ...PACK, log, source_version: "1" }],
  ] as const) {
    const answer = await ask(house, asked, { token, json });
    expect([asked, answer.status]).toEqual([asked, 201]);
  }
  const entries = await entriesOf(house.database.reader, log);
  const written = ["rate_card", "project_class", "quota", "pack"] as const;
  for (const kind of written) {
    expect(ofKind(entries, kind).at(-1)?.body.by).toMatch(/^p_[A-Za-z0-9_-]{22}$/);
  }
  expect((await post(cards, cardBody())).json["code"]).toBe("starts-in-the-past");
  const odd = { ...later, runner_factors: { small: "1/0" } };
  expect((await post(cards, odd)).json["code"]).toBe("invalid-factor");
  const large = { ...later, runner_factors: Object.fromEntries(machines(2_000)) };
  expect((await post(cards, large)).json["code"]).toBe("too-large");
});

const machines = (count: number) =>
  Array.from({ length: count }, (_, i) => [`${i}`.padEnd(30), "1"]);

test("under dual control nothing about money is written without an approval", async () => {
  const body = { unique_id: "dual", platform: "dotcom", billing_from: NOW, control: "dual" };
  const dual = (await post("/v1/logs", body)).json["log"];
  const answer = await post(`/v1/logs/${dual}/rate_cards`, cardBody());
  expect([answer.status, answer.json["code"]]).toEqual([409, "approval-required"]);
});

test.each([
  ["/v1/logs", { unique_id: "x", platform: "dotcom", billing_from: NOW, by: "me" }],
  ["/v1/logs", { unique_id: "x", platform: "dotcom", billing_from: "2026-11-01" }],
  ["/v1/logs", { unique_id: "x\u0000", platform: "dotcom", billing_from: NOW }],
  ["/v1/logs", { unique_id: "\ud800", platform: "dotcom", billing_from: NOW }],
  ["/v1/enrolments", { log: "x", namespaces: [], runners: [] }],
  ["/v1/enrolments/claim", { token: "x", claim: "y", more: true }],
  ["/v1/keys/rotate", { rotation: "x" }],
  ["/v1/packs", { ...PACK, log: "0".repeat(32), source_version: "1", expires_in: "2026-11" }],
])("%s refuses a body that is not as documented, naming the members", async (path, json) => {
  const answer = await post(path, json);
  expect([answer.status, answer.json["code"]]).toEqual([400, "invalid-request"]);
  expect(answer.json["members"]).toBeInstanceOf(Array);
});

test("a control body that names a member twice, hides one, or is too large, is refused", async () => {
  const headers = { "content-type": "application/json" };
  const card = JSON.stringify(cardBody());
  const hidden = card.replace('"project_factors":{', '"project_factors":{"__proto__":"1",');
  expect(hidden).not.toBe(card);
  for (const [path, jose] of [
    ["enrolments", '{"log":"a","log":"b"}'],
    [`logs/${log}/rate_cards`, hidden],
  ] as const) {
    const answer = await ask(house, `POST /v1/${path}`, { token, jose, headers });
    expect([answer.status, answer.json["code"]]).toEqual([400, "invalid-request"]);
  }
  const huge = " ".repeat(200_000);
  const second = await ask(house, "POST /v1/enrolments", { token, jose: huge, headers });
  expect([second.status, second.json["code"]]).toEqual([413, "too-large"]);
});

test("nothing that was secret in a request is in the service's log", async () => {
  const secret = await enrolment();
  await ask(house, "POST /v1/enrolments/claim", { json: { token: secret, claim: "x" } });
  const text = house.logged.join("");
  expect(text).not.toContain(secret);
  expect(text).not.toContain(await everybody());
});
