/** What keeps a month open though nothing on the log is open: keys that ended, and jobs that nobody held against it. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { TYP } from "../../../src/core/report.ts";
import { finish } from "../../../src/flow/month/finish.ts";
import { take } from "../../../src/flow/reconcile/take.ts";
import { refreshViews } from "../../../src/store/rollups.ts";
import { jwk, kidOf, NOW, REVOCATION } from "../../core/history.ts";
import { closeHouse, type House, ofKind, openHouse, sign } from "../door.ts";
import { type MonthDesk, openDesk } from "./desk.ts";

const OCTOBER = "2026-10-01";
const NOVEMBER = "2026-11-01";
const SINCE = "2026-10-20T12:00:00.000Z";
const BUILD = { job: "1", namespace: "7", minutes: 20, finished: "2026-10-20T10:00:00.000Z" };

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => closeHouse(house));

/** One build, an account, and four days after the month. */
async function october(name: string): Promise<MonthDesk> {
  const desk = await openDesk(house, name, { since: SINCE });
  await desk.account("");
  expect(await desk.build(BUILD)).toBe("accepted");
  desk.at("2026-11-05T00:00:00.000Z");
  return desk;
}

const coverOctober = (desk: MonthDesk) =>
  desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`);

async function rotate(desk: MonthDesk, final_counter: string): Promise<void> {
  const payload = { final_counter, issued_at: NOW, log: desk.log, public_key: jwk(41) };
  await desk.put("key_rotated", { jws: sign(1, TYP.rotation, payload) });
}

async function revoke(desk: MonthDesk, last_trusted_counter: string): Promise<void> {
  await desk.put("key_revoked", { ...REVOCATION, kid: kidOf(1), last_trusted_counter });
}

test("a key that ended owes its counters up to the last, and its runner coverage, before a month is cut off", async () => {
  const desk = await october("rotated");
  await rotate(desk, "50");
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "attestations", "coverage"]);
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "attestations"]);
  const lost = await desk.breakOf(OCTOBER, { code: "counter-gap", kid: kidOf(1) });
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "breaks", "attestations"]);
  await desk.resolveBreak(lost);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
});

test.each([
  ["and all of whose counters came", (desk: MonthDesk) => rotate(desk, "1")],
  [
    "and had attested after the month's end",
    async (desk: MonthDesk) => {
      await desk.attest();
      await revoke(desk, "1");
    },
  ],
])("a key that ended, %s, owes nothing more", async (name, end) => {
  const desk = await october(name);
  await end(desk);
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
});

test.each([
  ["3", "came", ["done"]],
  ["4", "came", ["done"]],
  ["4", "was attested", ["done"]],
  ["5000", "came", ["month-not-ready", "attestations"]],
])(
  "of a key that ends at %s, a gap accepted when counter 3 %s is of no later one",
  async (final, known, answer) => {
    const desk = await october(`${final} ${known}`);
    desk.lose();
    if (known === "came") await desk.build({ ...BUILD, job: "3" });
    else {
      desk.lose();
      desk.at(SINCE);
      await desk.attest();
      desk.at("2026-11-05T00:00:00.000Z");
    }
    await desk.resolveBreak(await desk.breakOf(OCTOBER, { code: "counter-gap", kid: kidOf(1) }));
    await desk.build({ ...BUILD, job: "4" });
    await rotate(desk, final);
    await coverOctober(desk);
    expect(await desk.close(OCTOBER)).toEqual(answer);
  },
);

test.each(["0", "1", "50"])(
  "whoever revokes a key at %s says nothing of what it signed: its month waits for two persons",
  async (last) => {
    const desk = await october(`revoked ${last}`);
    desk.at(SINCE);
    await desk.attest();
    await revoke(desk, last);
    desk.at("2026-11-05T00:00:00.000Z");
    await coverOctober(desk);
    expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "attestations"]);
    const about = { code: "missing-attestation", kid: kidOf(1) } as const;
    await desk.resolveBreak(await desk.breakOf(OCTOBER, about));
    expect(await desk.close(OCTOBER)).toEqual(["done"]);
  },
);

test.each([
  ["is all that was ever known", false, ["done"]],
  ["is not the last that came", true, ["month-not-ready", "attestations"]],
])(
  "of a key that is revoked later, what was known when its silence was accepted %s",
  async (name, goesOn, answer) => {
    const desk = await october(name);
    const about = { code: "missing-attestation", kid: kidOf(1) } as const;
    await desk.resolveBreak(await desk.breakOf(OCTOBER, about));
    if (goesOn) await desk.build({ ...BUILD, job: "2" });
    await revoke(desk, "0");
    await coverOctober(desk);
    expect(await desk.close(OCTOBER)).toEqual(answer);
  },
);

test("a key that named its last counter owes all up to it, whatever it is revoked at", async () => {
  const desk = await october("rotated and revoked");
  await rotate(desk, "2");
  await revoke(desk, "1");
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "attestations"]);
  expect(await desk.build({ ...BUILD, job: "2" })).toBe("key-ended");
  await desk.resolveHolds();
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
});

test("a key that ended in a month owes that month, and none after it", async () => {
  const desk = await october("gone");
  await desk.attest();
  await rotate(desk, "50");
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ missing: [] });
  desk.at("2027-01-05T00:00:00.000Z");
  expect(await desk.close(NOVEMBER)).toEqual(["month-not-ready", "attestations", "coverage"]);
  await desk.resolveBreak(await desk.breakOf(NOVEMBER, { code: "counter-gap", kid: kidOf(1) }));
  await desk.cover(`${NOVEMBER}T00:00:00.000Z`, "2026-12-01T00:00:00.000Z");
  expect(await desk.close(NOVEMBER)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ missing: [] });
  expect(await desk.close("2026-12-01")).toEqual(["done"]);
});

/** As the platform lists a job that nobody reported. */
const UNREPORTED = {
  job_id: "2",
  runner_id: "700",
  project_id: "50",
  status: "success",
  started_at: "2026-10-20T09:00:00.000Z",
  finished_at: "2026-10-20T10:00:00.000Z",
  duration_ms: 3_600_000n,
};

test("no month is cut off past coverage and platform jobs that nobody has held against the log yet", async () => {
  const desk = await october("unmatched");
  await desk.attest();
  await coverOctober(desk);
  const { appender, clock, sql } = desk.finishing;
  await take({ appender, clock, sql }, desk.log, [UNREPORTED], "upload");
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "matching"]);
  await sql`update reconcile_marks set index = 0 where log = ${desk.log} and part = 'population'`;
  await sql`update platform_jobs set due_at = null where log = ${desk.log}`;
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "matching"]);
  await sql`update platform_jobs set due_at = '-infinity' where log = ${desk.log}`;
  await desk.match();
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "breaks"]);
});

test("no month is cut off on coverage of jobs that are not in this database, until all is covered anew", async () => {
  const desk = await october("lost");
  await desk.attest();
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  expect(await desk.withdraw(OCTOBER)).toEqual(["done"]);
  await desk.coverElsewhere("2026-10-31T00:00:00.000Z", "2026-11-02T00:00:00.000Z");
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "matching"]);
  await coverOctober(desk);
  await desk.coverElsewhere(`${NOVEMBER}T00:00:00.000Z`, "2026-11-02T00:00:00.000Z");
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
});

test("what comes up between cut-off and closing keeps the month from being closed until it has ended", async () => {
  const desk = await october("between");
  await desk.attest();
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  const { appender, clock, sql } = desk.finishing;
  await take({ appender, clock, sql }, desk.log, [UNREPORTED], "upload");
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ missing: [expect.stringMatching(/^matching/)] });
  await desk.match();
  expect(await desk.finish()).toMatchObject({ missing: [expect.stringMatching(/^breaks/)] });
  expect(ofKind(await desk.entries(), "month_closed")).toEqual([]);
  const found = ofKind(await desk.entries(), "break").at(-1);
  await desk.resolveBreak(String(found?.index));
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ missing: [] });
});

test("a month waits while the views show something else than its entries give", async () => {
  const desk = await october("shown otherwise");
  await desk.attest();
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  const { superuser, writer } = house.database;
  const shift = async (jobs: number): Promise<void> => {
    await superuser`update usage_buckets set jobs = jobs + ${jobs} where log = ${desk.log}`;
    await writer.begin(refreshViews);
  };
  await shift(1);
  const missing = ["rollups: they are not equal to a recount"];
  expect(await desk.finish()).toEqual({ month: OCTOBER, missing });
  await shift(-1);
  expect(await desk.finish()).toMatchObject({ month: OCTOBER, missing: [] });
});

test("a delay that did not hold at the cut-off closes nothing: the cut-off is withdrawn, and pinned anew", async () => {
  const desk = await october("delay");
  await desk.attest();
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  const longer = { ...desk.finishing, closeDelayDays: 7n };
  expect(await finish(longer, desk.log)).toMatchObject({
    missing: ["delay: not before 2026-11-08T00:00:00.000Z"],
  });
  expect(ofKind(await desk.entries(), "month_closed")).toEqual([]);
  expect(await desk.withdraw(OCTOBER)).toEqual(["done"]);
  desk.at("2026-11-08T00:00:00.000Z");
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  expect(await finish(longer, desk.log)).toMatchObject({ missing: [] });
  expect(ofKind(await desk.entries(), "month_closed")[0]?.body.close_delay_days).toBe("7");
});

test("a month before anything was billed is closed without coverage, attestation or account", async () => {
  const billing_from = "2026-11-15T00:00:00.000Z";
  const desk = await openDesk(house, "before", { since: SINCE, billing_from });
  expect(await desk.build(BUILD)).toBe("accepted");
  desk.at("2026-12-05T00:00:00.000Z");
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ missing: [] });
  expect(await desk.close(NOVEMBER)).toEqual(["month-not-ready", "attestations", "coverage"]);
});

test("an open conflict keeps the month of what stands open, though the other version ended after it", async () => {
  const desk = await openDesk(house, "border", { since: SINCE });
  await desk.account("");
  desk.at("2026-11-01T00:10:00.000Z");
  const late = { ...BUILD, finished: "2026-10-31T23:59:00.000Z" };
  expect(await desk.build(late)).toBe("accepted");
  expect(await desk.build({ ...late, finished: "2026-11-01T00:00:01.000Z" })).toBe("conflict");
  desk.at("2026-11-05T00:00:00.000Z");
  await desk.attest();
  await coverOctober(desk);
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "conflicts"]);
});
