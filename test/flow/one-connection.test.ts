/** Nothing asks its pool for a second connection while it holds one: users who all do so wait for each other. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { preview } from "../../src/flow/credit/preview.ts";
import { showRuns } from "../../src/flow/credit/show.ts";
import { uploadNamespaces } from "../../src/flow/credit/upload.ts";
import { finish } from "../../src/flow/month/finish.ts";
import { showMonth, showMonths } from "../../src/flow/month/show.ts";
import { completeness } from "../../src/flow/reconcile/completeness.ts";
import { connect, type Sql } from "../../src/store/connect.ts";
import { closeHouse, type House, openHouse } from "./door.ts";
import { type MonthDesk, openDesk } from "./month/desk.ts";

const OCTOBER = "2026-10-01";

let house: House;
let desk: MonthDesk;
let sql: Sql;
beforeAll(async () => {
  house = await openHouse();
  sql = connect(house.database.urls.writer, { max: 1 });
  desk = await openDesk(house, "one connection", { since: "2026-10-20T12:00:00.000Z" });
  await desk.account("");
  await desk.build({
    ...{ job: "1", namespace: "7", minutes: 20, finished: "2026-10-20T10:00:00.000Z" },
  });
});
afterAll(async () => {
  await sql.end();
  await closeHouse(house);
});

test("a credit run is looked for and kept on one connection, also of a list of namespaces", async () => {
  const { clock, random } = desk.finishing;
  const previewing = { sql, clock, random };
  expect(await preview(previewing, desk.log, { form: "zero_rate" })).toMatchObject({ lines: 1n });
  const { namespaces_sha256 } = await uploadNamespaces({ sql }, desk.log, { namespaces: "7\n9" });
  const asked = { form: "goodwill_pack", minutes: "5", namespaces_sha256 } as const;
  expect(await preview(previewing, desk.log, asked)).toMatchObject({ lines: 2n });
  expect((await showRuns({ sql }, { log: desk.log })).credit_runs).toEqual([]);
});

test("a month is shown, counted, closed and stated on one connection", async () => {
  desk.at("2026-11-05T00:00:00.000Z");
  await desk.attest();
  await desk.cover("2026-10-01T00:00:00.000Z", "2026-11-01T00:00:00.000Z");
  const showing = { ...desk.finishing, sql };
  const shown = async () => (await showMonth(showing, { log: desk.log, month: OCTOBER })).state;
  expect(await shown()).toBe("open");
  expect(await desk.close(OCTOBER)).toMatchObject(["done"]);
  await desk.settle();
  expect(await finish(showing, desk.log)).toMatchObject({ month: OCTOBER, missing: [] });
  expect(await shown()).toBe("closed");
  await desk.settle();
  await finish(showing, desk.log);
  expect(await desk.statement(OCTOBER)).toContain(`"month":"${OCTOBER}"`);
  expect((await showMonths({ sql }, desk.log)).months).toHaveLength(1);
  await completeness({ sql }, desk.log, "2026-10-20");
});
