/** Held reports and conflicts as persons work them off: alone, or two of them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { reported } from "../flow/door.ts";
import { coded, FourEyes, type Opened } from "./four-eyes.ts";
import { ask, cardBody, newLog } from "./house.ts";

let desk: FourEyes;

beforeAll(async () => {
  desk = await FourEyes.open();
});
afterAll(() => desk.house.close());

const LONG = { duration_ms: "2678400001" };
const WHY = { reason: "looked_at", ticket: "OPS-1" };

/** Index of the entry that the report came to. */
async function submitted(jose: string): Promise<string> {
  return String((await ask(desk.house, "POST /v1/reports", { jose })).json["index"]);
}

/** As they are shown, newest last. */
async function shown(log: string, kind: "holds" | "conflicts", state = "all") {
  const path = `GET /v1/logs/${log}/${kind}?state=${state}`;
  const { json } = await ask(desk.house, path, { token: desk.proposer });
  return json[kind] as Record<string, unknown>[];
}

test("alone, where one person may: each is shown with its age until it ends, and then with its end", async () => {
  const { log } = await newLog(desk.house, "single holds", 1);
  const token = desk.proposer;
  const held = await submitted(reported(1, log, { counter: "1", usage: LONG }));
  const other = { counter: "2", job: { id: "2" }, usage: LONG };
  const rejected = await submitted(reported(1, log, other));
  desk.house.clock.time += 60_000;
  const place = { index: held, code: "over-cap", age_ms: "60000" };
  expect((await shown(log, "holds", "open"))[0]).toMatchObject(place);
  expect((await shown(log, "holds", "open"))[0]).not.toHaveProperty("resolution");
  const release = `POST /v1/logs/${log}/holds/${held}/release`;
  expect((await ask(desk.house, release, { token, json: WHY })).status).toBe(201);
  expect(coded(await ask(desk.house, release, { token, json: WHY }))).toEqual([
    409,
    "already-decided",
  ]);
  const reject = `POST /v1/logs/${log}/holds/${rejected}/reject`;
  expect((await ask(desk.house, reject, { token, json: WHY })).status).toBe(201);
  desk.house.clock.time += 60_000;
  expect(await shown(log, "holds", "open")).toEqual([]);
  expect(await shown(log, "holds", "ended")).toMatchObject([
    { ...place, resolution: { ...WHY, outcome: "released", by: expect.stringMatching(/^p_/) } },
    { index: rejected, resolution: { outcome: "rejected" } },
  ]);
  const usage = { duration_ms: "1" };
  const conflict = await submitted(reported(1, log, { counter: "3", job: { id: "3" } })).then(() =>
    submitted(reported(1, log, { counter: "4", job: { id: "3" }, usage })),
  );
  const resolve = `POST /v1/logs/${log}/conflicts/${conflict}/resolve`;
  const corrected = { ...WHY, outcome: "corrected" };
  expect(coded(await ask(desk.house, resolve, { token, json: corrected }))).toEqual([
    409,
    "correction-needed",
  ]);
  const stands = { ...WHY, outcome: "stands" };
  expect((await ask(desk.house, resolve, { token, json: stands })).status).toBe(201);
  expect(await shown(log, "conflicts")).toMatchObject([
    { index: conflict, resolution: { outcome: "stands" } },
  ]);
});

test("invariant 12: under dual control nobody does it alone, and two do by a proposal that says what it does", async () => {
  const { house, log } = desk;
  await desk.decided("rate_card", cardBody());
  await desk.agent(2);
  const held = await submitted(reported(2, log, { counter: "1", usage: LONG }));
  for (const verb of ["release", "reject"]) {
    const path = `POST /v1/logs/${log}/holds/${held}/${verb}`;
    const alone = await ask(house, path, { token: desk.proposer, json: WHY });
    expect(coded(alone)).toEqual([409, "approval-required"]);
  }
  const content = { ...WHY, hold: held, outcome: "released" };
  const answer = await desk.propose({ action: "hold_resolved", content });
  expect(JSON.parse(String(answer.json["effect"]))).toMatchObject({
    code: "over-cap",
    duration_ms: LONG.duration_ms,
    usage: { compute_ms: `${LONG.duration_ms}.000000`, billing_month: "2026-11-01" },
  });
  const rival = await desk.opened({
    action: "hold_resolved",
    content: { ...content, outcome: "rejected" },
  });
  const { index, nonce } = answer.json;
  expect((await desk.approve({ index, nonce } as unknown as Opened)).status).toBe(201);
  expect(coded(await desk.approve(rival))).toEqual([409, "already-decided"]);
  expect(await desk.state(rival)).toBe("open");
  const kinds = (await desk.entries()).map(({ kind }) => kind);
  const released = kinds.indexOf("hold_resolved");
  expect(kinds.slice(released - 1, released + 2)).toEqual(["approval", "hold_resolved", "usage"]);

  const usage = { duration_ms: "1" };
  const conflict = await submitted(reported(2, log, { counter: "2", usage }));
  const resolve = `POST /v1/logs/${log}/conflicts/${conflict}/resolve`;
  const stands = { ...WHY, outcome: "stands" };
  const alone = await ask(house, resolve, { token: desk.proposer, json: stands });
  expect(coded(alone)).toEqual([409, "approval-required"]);
  await desk.decided("conflict_resolved", { ...stands, conflict });
  expect(await shown(log, "conflicts", "open")).toEqual([]);
});

test("what could not be let in is not even proposed", async () => {
  const { log } = desk;
  const held = await submitted(reported(2, log, { counter: "3", uuid: "nobody's" }));
  const content = { ...WHY, hold: held, outcome: "released" };
  const refused = await desk.propose({ action: "hold_resolved", content });
  expect([...coded(refused), refused.json["reason"]]).toEqual([
    409,
    "cannot-be-rated",
    "outside-enrolment",
  ]);
  const same = { counter: "4", usage: { ...LONG, status: "failed" } };
  const second = await submitted(reported(2, log, same));
  const again = { ...content, hold: second };
  expect(coded(await desk.propose({ action: "hold_resolved", content: again }))).toEqual([
    409,
    "job-stands",
  ]);
});
