/** Whose word a closed month rests on, and in which order months come. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { run } from "../../../audit/command/program.ts";
import { parseCanonical } from "../../../src/core/json.ts";
import { Statement } from "../../../src/core/month/statement.ts";
import { formatVkey } from "../../../src/core/note.ts";
import { encodeBase64, encodeUtf8 } from "../../../src/core/text.ts";
import { finish } from "../../../src/flow/month/finish.ts";
import { statementPage } from "../../../src/web/statement.tsx";
import { closeHouse, type House, ofKind, openHouse, vkeyOf } from "../door.ts";
import { policyOf, TestWitness } from "../witness.ts";
import { addCosignature } from "../witnessed.ts";
import { type MonthDesk, openDesk } from "./desk.ts";

const OCTOBER = "2026-10-01";
const NOVEMBER = "2026-11-01";
const SINCE = "2026-10-20T12:00:00.000Z";

const salt = encodeBase64(new Uint8Array(16));

const witness = new TestWitness("ada", 62, vkeyOf);
let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => closeHouse(house));

test("a month waits for its witness, and then its statement names who holds it and since when", async () => {
  const desk = await openDesk(house, "witnessed", { since: SINCE, policy: policyOf([witness], 1) });
  desk.at("2026-11-04T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ missing: [expect.stringMatching(/^anchor/)] });
  expect(ofKind(await desk.entries(), "month_closed")).toEqual([]);

  const size = BigInt((await desk.entries()).length);
  await addCosignature(house.database.writer, desk.log, size, witness);
  expect(await desk.finish()).toMatchObject({ month: OCTOBER, missing: [] });
  const statement = Statement.parse(parseCanonical(encodeUtf8(await desk.statement(OCTOBER))));
  const since = new Date(Number(witness.time) * 1_000).toISOString();
  expect(statement.anchor).toEqual({ by: [{ at: since, name: "ada.test" }], kind: "witnessed" });
  expect(statement.checkpoint.size).toBe(String(size));
  const { html } = statementPage(statement);
  expect(html).toContain("ada.test");
  expect(html).not.toContain("UNANCHORED");
});

test("a month waits for the archive's lock where it locks, and its statement says until when", async () => {
  const desk = await openDesk(house, "locked", { since: SINCE });
  desk.at("2026-11-04T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  const { archive } = desk.finishing;
  let until: Date | undefined;
  const locking = { ...archive, lockMs: 1_000, lockedUntil: async () => until };
  const finishing = { ...desk.finishing, archive: locking };
  expect(await finish(finishing, desk.log)).toMatchObject({
    missing: [expect.stringMatching(/^anchor/)],
  });
  until = new Date("2033-11-04T00:00:00.000Z");
  expect(await finish(finishing, desk.log)).toMatchObject({ missing: [] });
  const statement = Statement.parse(parseCanonical(encodeUtf8(await desk.statement(OCTOBER))));
  const by = [{ at: until.toISOString(), name: "lock" }];
  expect(statement.anchor).toEqual({ by, kind: "locked" });
});

test("no month is passed over: the first that is closed is the first of use, and one is cut off at a time", async () => {
  const desk = await openDesk(house, "order", { since: SINCE });
  await desk.account("");
  const build = { job: "1", namespace: "7", minutes: 1, finished: "2026-10-20T11:00:00.000Z" };
  expect(await desk.build(build)).toBe("accepted");
  desk.at("2027-01-10T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, "2027-01-01T00:00:00.000Z");
  expect(await desk.close(NOVEMBER)).toEqual(["month-not-ready", "order"]);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  expect(await desk.close(NOVEMBER)).toEqual(["month-not-ready", "order"]);
  await desk.settle();
  await desk.finish();
  expect(await desk.close("2026-12-01")).toEqual(["months-in-order"]);
  expect(await desk.close(NOVEMBER)).toEqual(["done"]);
});

test("a cut-off that is withdrawn while it is being closed closes nothing", async () => {
  const desk = await openDesk(house, "withdrawn", { since: SINCE });
  desk.at("2026-11-04T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  const { appender } = desk.finishing;
  const control: typeof appender.control = async (...asked) => {
    if (asked[1] === "month_closed") expect(await desk.withdraw(OCTOBER)).toEqual(["done"]);
    return await appender.control(...asked);
  };
  const finishing = { ...desk.finishing, appender: { ...appender, control } };
  await expect(finish(finishing, desk.log)).rejects.toMatchObject({ code: "months-in-order" });
  expect(ofKind(await desk.entries(), "month_closed")).toEqual([]);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
});

test("of two processes that have both made a month's files one closes it, and both go by its entry", async () => {
  const desk = await openDesk(house, "together", { since: SINCE });
  await desk.account("");
  const build = { job: "1", namespace: "7", minutes: 1, finished: "2026-10-20T11:00:00.000Z" };
  expect(await desk.build(build)).toBe("accepted");
  desk.at("2026-11-04T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  const waiting: (() => void)[] = [];
  const closing = [desk.finishing.appender, house.open().appender].map(async (appender) => {
    const control: typeof appender.control = async (...asked) => {
      await new Promise<void>((go) => {
        if (waiting.push(go) === 2) for (const each of waiting) each();
      });
      return await appender.control(...asked);
    };
    return await finish({ ...desk.finishing, appender: { ...appender, control } }, desk.log);
  });
  const [one, other] = await Promise.all(closing);
  const [entry, ...others] = ofKind(await desk.entries(), "month_closed");
  expect(others).toEqual([]);
  for (const finished of [one, other]) {
    expect(finished?.receipt?.index).toBe(entry?.index);
    expect(finished?.exports).toEqual(entry?.body.exports);
  }
  expect(JSON.parse(await desk.statement(OCTOBER)).exports).toEqual(entry?.body.exports);
});

test("a month that may not be cut off, or taken back, is refused for that, before a second person is asked", async () => {
  const billing_from = "2026-10-15T00:00:00.000Z";
  const desk = await openDesk(house, "first", { since: SINCE, billing_from });
  desk.at("2026-11-04T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`);
  expect(await desk.close("1999-01-01")).toEqual(["month-not-ready", "order"]);
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ month: OCTOBER, missing: [] });
  const by = { approval: "", by: "p_test", salt };
  const named = { claim: "sub", issuer: "https://id.example", value: "2" };
  const grants = [{ ...named, namespaces: "*", role: "approver" } as const];
  await desk.put("role_mapping", { ...by, grants });
  await desk.put("mode", { ...by, billing_from, control: "dual", sources: [] });
  expect(await desk.withdraw(OCTOBER)).toEqual(["month-closed"]);
  expect(await desk.close(OCTOBER)).toEqual(["months-in-order"]);
  const lacks = expect.arrayContaining(["month-not-ready", "delay"]);
  expect(await desk.close(NOVEMBER)).toEqual(lacks);
  desk.at("2026-12-04T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${NOVEMBER}T00:00:00.000Z`, "2026-12-01T00:00:00.000Z");
  expect(await desk.close(NOVEMBER)).toEqual(["approval-required"]);
});

/** As it is enrolled after the month: that it was there in the month, or only since then. */
const LATE = { uuid: "late", runner_id: "701" };
const SINCE_THEN = { effective_from: "2026-11-05T00:00:00.001Z" };

test("a key that came after the month owes what its runner did in it, and attests that as of now", async () => {
  const desk = await openDesk(house, "came later", { since: SINCE });
  desk.at("2026-11-05T00:00:00.000Z");
  await desk.attest();
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`);
  await desk.join(2, { ...LATE, ...SINCE_THEN });
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  expect(await desk.withdraw(OCTOBER)).toEqual(["done"]);
  await desk.join(3, SINCE_THEN);
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "attestations"]);
  await desk.attest(3);
  await desk.join(4, { ...LATE, uuid: "later", runner_id: "702" });
  expect(await desk.close(OCTOBER)).toEqual(["month-not-ready", "attestations", "coverage"]);
  await desk.attest(4);
  await desk.cover(`${OCTOBER}T00:00:00.000Z`, `${NOVEMBER}T00:00:00.000Z`, "702");
  expect(await desk.close(OCTOBER)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ month: OCTOBER, missing: [] });
  const stated = await desk.statement(OCTOBER);
  const { preconditions } = Statement.parse(JSON.parse(stated));
  const seen = new Map(preconditions.map(({ code, evidence }) => [code, evidence]));
  expect(seen.get("attestations")).toMatchObject({ keys: "3" });
  expect(seen.get("coverage")).toMatchObject({ runners: "2" });
  await desk.settle();
  expect(await stateAnew(desk, OCTOBER)).toBe(stated);
});

/** What the auditor says that the statement is. */
async function stateAnew({ log }: MonthDesk, month: string): Promise<string> {
  const { name, publicKey } = vkeyOf(log);
  const of = ["--vkey", formatVkey(name, publicKey), "--month", month.slice(0, 7)];
  let text = "";
  const out = (more: string): void => {
    text += more;
  };
  const output = { out, err: () => undefined, progress: false };
  expect(await run(["statement", house.archive, log, ...of], output)).toBe(0);
  return text;
}
