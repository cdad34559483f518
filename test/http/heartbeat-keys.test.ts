/** Who may say that a job runs, and what is counted of it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { TYP } from "../../src/core/report.ts";
import { kidOf, NOW, RUNNER, UUID } from "../core/history.ts";
import { claimOf, reported, sign } from "../flow/door.ts";
import { heartbeatOf } from "./heartbeat.ts";
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
import { Desk, minutes } from "./quota-desk.ts";

let house: House;
let desk: Desk;

beforeAll(async () => {
  house = await openHouse();
  desk = new Desk(house, await newLog(house, "heartbeat keys", 1));
});
afterAll(() => house.close());

async function refusedAs(...heartbeats: string[]): Promise<string[]> {
  return (await desk.hear(...heartbeats)).map(({ code }) => code);
}

test("the customer's own runners are not counted and not stopped", async () => {
  const card = { ...cardBody(), tracking: "self_managed", project_factors: {} };
  const path = `/v1/logs/${desk.log}/rate_cards`;
  await ask(house, `POST ${path}`, { token: desk.token, json: card });
  await newAgent(house, desk.log, 3, { tracking: "self_managed", uuid: "own", runner_id: "1" });
  const id = await desk.namespace({ monthly_minutes: "1", grace_minutes: "0" });
  const job = { id: "51", root_namespace_id: id, elapsed_ms: minutes(600) };
  const [own] = await desk.heard(heartbeatOf(3, desk.log, [job], "own"));
  expect(own).toMatchObject({ allowed: true, reason: "not-counted" });
  expect(own).not.toHaveProperty("as_of");
  expect(await desk.remaining(id)).toBe("1.0000");
});

test("a group runner's key speaks for its own namespaces, and learns nothing of another's", async () => {
  const [own, other] = [
    await desk.namespace({ monthly_minutes: "10" }),
    await desk.namespace({ monthly_minutes: "10" }),
  ];
  const line = { ...RUNNER, runner_type: "group", uuid: "group", runner_id: "2" };
  const json = { log: desk.log, namespaces: [own], runners: [line] };
  const secret = String(
    (await ask(house, "POST /v1/enrolments", { token: await everybody(), json })).json["token"],
  );
  const claim = { token: secret, claim: claimOf(4, desk.log, secret) };
  await ask(house, "POST /v1/enrolments/claim", { json: claim });
  const jobs = [own, other].map((root_namespace_id, i) => ({ id: `6${i}`, root_namespace_id }));
  const [mine, theirs] = await desk.heard(heartbeatOf(4, desk.log, jobs, "group"));
  expect(mine).toMatchObject({ reason: "within", remaining_minutes: "9.0000" });
  expect(theirs).toEqual({
    job_id: "61",
    namespace_id: other,
    allowed: true,
    job_status: "running",
    reason: "outside-enrolment",
  });
  expect(await desk.remaining(other)).toBe("10.0000");
  // Nor for a runner that is not its own, though the log has it.
  const [foreign] = await desk.heard(heartbeatOf(4, desk.log, jobs, UUID));
  expect(foreign?.reason).toBe("outside-enrolment");
});

test("a machine without a rate is not counted, as its report would be held", async () => {
  const id = await desk.namespace({ monthly_minutes: "1" });
  await newAgent(house, desk.log, 5, { machine_type: "unheard-of", uuid: "rare", runner_id: "3" });
  const job = { id: "71", root_namespace_id: id, elapsed_ms: minutes(9_000) };
  const [decision] = await desk.heard(heartbeatOf(5, desk.log, [job], "rare"));
  expect(decision).toMatchObject({ allowed: true, reason: "no-rate" });
});

test("T58: a key that was revoked or rotated is not heard any more, and its successor is", async () => {
  const [revoked, rotated, successor] = [6, 7, 8];
  await newAgent(house, desk.log, revoked, { uuid: "lost", runner_id: "4" });
  const line = { ...RUNNER, uuid: "kept", runner_id: "5" };
  const json = { log: desk.log, namespaces: [], runners: [line] };
  const token = await everybody();
  const secret = String((await ask(house, "POST /v1/enrolments", { token, json })).json["token"]);
  const claim = { token: secret, claim: claimOf(rotated, desk.log, secret) };
  await ask(house, "POST /v1/enrolments/claim", { json: claim });
  const of = (seed: number, uuid: string) => heartbeatOf(seed, desk.log, [{ id: "81" }], uuid);
  expect(await refusedAs(of(revoked, "lost"), of(rotated, "kept"))).toEqual(["heard", "heard"]);
  const end = { log: desk.log, last_trusted_counter: "9", reason: "stolen" };
  await ask(house, `POST /v1/keys/${kidOf(revoked)}/revoke`, { token, json: end });
  const rotation = {
    rotation: rotationOf(rotated, successor, desk.log, "9"),
    claim: claimOf(successor, desk.log, secret),
  };
  await ask(house, "POST /v1/keys/rotate", { json: rotation });
  expect(await refusedAs(of(revoked, "lost"), of(rotated, "kept"), of(successor, "kept"))).toEqual([
    "key-has-ended",
    "key-has-ended",
    "heard",
  ]);
  const alone = await ask(house, "POST /v1/heartbeats", { jose: of(revoked, "lost") });
  expect([alone.status, alone.json["code"]]).toEqual([409, "key-has-ended"]);
});

test("G20: a runner that is taken out of service while a build runs hides nothing of it", async () => {
  const [seed, uuid] = [11, "withdrawn"];
  await newAgent(house, desk.log, seed, { uuid, runner_id: "6" });
  const id = await desk.namespace({ monthly_minutes: "10" });
  const job = { id: "201", root_namespace_id: id, elapsed_ms: minutes(4) };
  await desk.heard(heartbeatOf(seed, desk.log, [job], uuid));
  const end = { log: desk.log, last_trusted_counter: "0", reason: "withdrawn" };
  const route = `POST /v1/keys/${kidOf(seed)}/revoke`;
  await ask(house, route, { token: desk.token, json: end });
  expect(await refusedAs(heartbeatOf(seed, desk.log, [job], uuid))).toEqual(["key-has-ended"]);
  expect(await desk.remaining(id)).toBe("6.0000");
});

test("each refusal has its code, in the order of judgement, and touches none of its neighbours", async () => {
  const other = await newLog(house, "somebody else's", 9);
  const good = heartbeatOf(1, desk.log, [{ id: "91" }]);
  const forged = `${good.slice(0, -80)}${"A".repeat(80)}`;
  const payload = {
    issued_at: NOW,
    jobs: [],
    log: desk.log,
    runner: { system_id: "s", uuid: UUID },
  };
  expect(
    await refusedAs(
      "no jws",
      heartbeatOf(77, desk.log, [{}]),
      forged,
      reported(1, desk.log),
      sign(1, TYP.heartbeat, `{"z":"1","a":"2"}`),
      sign(1, TYP.heartbeat, payload),
      heartbeatOf(1, other.log, [{}]),
      good,
    ),
  ).toEqual([
    "malformed",
    "unknown-key",
    "bad-signature",
    "wrong-typ",
    "non-canonical",
    "schema",
    "wrong-log",
    "heard",
  ]);
});

test("on Dedicated everything is tracked and nothing stopped", async () => {
  const body = {
    unique_id: "one tenant",
    platform: "dedicated",
    billing_from: "2026-01-01T00:00:00.000Z",
  };
  const token = await everybody();
  const made = await ask(house, "POST /v1/logs", { token, json: body });
  const log = String(made.json["log"]);
  const card = { ...cardBody(), project_factors: {} };
  await ask(house, `POST /v1/logs/${log}/rate_cards`, { token, json: card });
  await newAgent(house, log, 10, { uuid: "dedicated" });
  const dedicated = new Desk(house, { log, token });
  await dedicated.limit("7", { monthly_minutes: "1", grace_minutes: "0" });
  const job = { id: "1", elapsed_ms: minutes(5_000) };
  const [running] = await dedicated.heard(heartbeatOf(10, log, [job], "dedicated"));
  expect(running).toMatchObject({ allowed: true, job_status: "running", reason: "tracked" });
  expect((await dedicated.start("7", "2"))[0]).toMatchObject({ allowed: true, reason: "tracked" });
});
