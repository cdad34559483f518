/** A month that is the same wherever it stands, and each place in turn at fault. */

import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { compareMonths } from "../../../src/flow/check/months.ts";
import { acknowledge } from "../../../src/flow/feed/acknowledge.ts";
import { type TieOut, tieOut } from "../../../src/flow/tie-out/tie-out.ts";
import type { Transaction } from "../../../src/store/connect.ts";
import type { House } from "../door.ts";
import type { MonthDesk } from "../month/desk.ts";
import {
  acknowledged,
  BILLED,
  type ClosedMonths,
  DECEMBER,
  NOVEMBER,
  OCTOBER,
  openClosedMonths,
} from "./closed-months.ts";

let months: ClosedMonths;
let house: House;
let desk: MonthDesk;
let folder: string;

beforeAll(async () => {
  months = await openClosedMonths();
  ({ house, desk, folder } = months);
}, 60_000);
afterAll(() => months.close());

const tied = (month: string): Promise<TieOut> =>
  tieOut({ sql: house.database.reader, files: months.files }, { log: desk.log, month });

/** The legs that do not say what the others say. */
async function differing(month: string = OCTOBER): Promise<string[]> {
  const { differences } = await tied(month);
  return [...new Set(differences.map(({ leg, against }) => `${leg} | ${against}`))].sort();
}

const legsOf = ({ figures }: TieOut, name: string): string[] =>
  figures.find(({ figure }) => figure === name)?.legs.map(({ leg }) => leg) ?? [];

test("log, rollups, allocations, exports and whoever bills say the same of each closed month, to the last digit", async () => {
  for (const month of [OCTOBER, NOVEMBER]) {
    const { differences, not_yet, state } = await tied(month);
    expect({ differences, not_yet, state }).toEqual({
      differences: [],
      not_yet: [],
      state: "closed",
    });
  }
  const october = await tied(OCTOBER);
  const billable = october.figures.find(({ figure }) => figure === "billable_compute_ms");
  expect(new Set(billable?.legs.map(({ value }) => value))).toEqual(new Set([BILLED]));
  expect(legsOf(october, "billable_compute_ms")).toEqual([
    ...["log", "month_closed", "statement", "ci_namespace_monthly_usages"],
    ...["ci_project_monthly_usages", "ci_gitlab_hosted_runner_monthly_usages"],
    ...["monthly_hosted_runner", "monthly_namespace", "monthly_project", "portal"].flatMap(
      (name) => [`manifests/${name}`, `exports/${name}`],
    ),
    "acknowledged/portal",
  ]);
  expect(legsOf(october, "pack_compute_ms")).toEqual([
    ...["statement", "allocations", "manifests/allocation", "exports/allocation"],
    ...["manifests/portal", "exports/portal"],
  ]);
});

test("of an open month it says what there is, and what is not there yet", async () => {
  const { differences, not_yet, state } = await tied(DECEMBER);
  expect({ differences, state }).toEqual({ differences: [], state: "open" });
  expect(not_yet).toEqual([
    ...["month_closed", "statement", "allocations", "pack_rolls", "exports", "acknowledged"],
  ]);
});

/** By somebody who may switch the guards off; undone when the test is over. */
async function altered(
  table: string,
  change: (tx: Transaction) => Promise<unknown>,
): Promise<void> {
  const { superuser } = house.database;
  const unguarded = async (work: (tx: Transaction) => Promise<unknown>): Promise<void> => {
    await superuser.begin(async (tx) => {
      await tx`alter table ${tx(table)} disable trigger user`;
      await work(tx);
      await tx`alter table ${tx(table)} enable always trigger ${tx(`${table}_append_only`)}`;
    });
  };
  await unguarded(async (tx) => {
    await tx`create table altered as table ${tx(table)}`;
    await change(tx);
  });
  onTestFinished(async () => {
    await unguarded(async (tx) => {
      await tx`delete from ${tx(table)}`;
      await tx`insert into ${tx(table)} table altered`;
      await tx`drop table altered`;
    });
  });
}

const MOVED = `
  net_compute_ms = net_compute_ms + case namespace_id when 7 then 0.000001 when 9 then -0.000001 else 0 end`;

test.each([
  ["closed_namespace_monthly_usages", MOVED, ["ci_namespace_monthly_usages | log"]],
  [
    "closed_project_monthly_usages",
    "project_id = project_id + 100",
    ["ci_project_monthly_usages | log"],
  ],
  [
    "closed_gitlab_hosted_runner_monthly_usages",
    "runner_duration_seconds = runner_duration_seconds + 1",
    ["ci_gitlab_hosted_runner_monthly_usages | log"],
  ],
  [
    "allocations",
    "overage = overage + 0.000001, absorbed = absorbed - 0.000001",
    ["allocations | month_closed", "allocations | statement"],
  ],
  ["allocations", "packs = '[7]'", ["allocations | month_closed"]],
  [
    "pack_rolls",
    "drawn = drawn - 1, closing = closing + 1",
    ["pack_rolls | month_closed", "pack_rolls | statement"],
  ],
  [
    "statements",
    `text = replace(text, '"overage":"', '"overage":"1')`,
    ["allocations | statement", "exports/allocation | statement", "exports/portal | statement"],
  ],
  ["statements", "text = ''", ["statement | log"]],
  ["accounts", "account_id = 'other'", ["accounts | month_closed"]],
  ["feed_acks", "consumer = 'other'", ["feed_acks | log"]],
  ["feed_acks", "up_to = up_to - 1", ["feed_acks | log"]],
  ["feed_acks", "index = 0", ["feed_acks | log"]],
])("a row of %s that a superuser altered (%s) is found", async (table, set, found) => {
  const isOfMonth = !["accounts", "feed_acks"].includes(table);
  await altered(table, async (tx) => {
    const column = table.startsWith("closed_gitlab") ? "billing_month" : "date";
    const month = table.startsWith("closed") ? column : "month";
    const own = isOfMonth ? tx`and ${tx(month)} = ${OCTOBER}` : tx``;
    await tx`update ${tx(table)} set ${tx.unsafe(set)} where log = ${desk.log} ${own}`;
  });
  const differences = await differing();
  expect(differences).toEqual(expect.arrayContaining(found));
  expect(await differing(NOVEMBER)).toEqual(isOfMonth ? [] : found);
});

test.each([
  ["finished_at", "'1 day'::interval"],
  ["job_id", "100"],
])(
  "a usage whose %s a superuser moved by %s is found, though every sum is the same",
  async (column, by) => {
    const { superuser } = house.database;
    const move = async (sign: "+" | "-"): Promise<void> => {
      await superuser.begin(async (tx) => {
        await tx`alter table entries disable trigger entries_append_only`;
        const set = `${column} = ${column} ${sign} ${by}`;
        await tx.unsafe(`update entries set ${set} where kind = 'usage' and project_id = 51`);
        await tx`alter table entries enable always trigger entries_append_only`;
      });
    };
    await move("+");
    onTestFinished(() => move("-"));
    expect(await differing()).toEqual(["entries | log"]);
  },
);

test("an acknowledgement that is on the log and no more in the table is found, and not only waited for", async () => {
  await altered("feed_acks", async (tx) => {
    await tx`delete from feed_acks where log = ${desk.log}`;
  });
  expect(await differing()).toEqual(["feed_acks | log"]);
});

test("an amount of the log that a superuser altered, and a bucket, differ from everything else", async () => {
  const { superuser } = house.database;
  await superuser.begin(async (tx) => {
    await tx`update usage_buckets set jobs = jobs + 1 where log = ${desk.log} and project_id = 51`;
  });
  expect(await differing()).toEqual(["usage_buckets | log"]);
  await superuser`update usage_buckets set jobs = jobs - 1 where log = ${desk.log} and project_id = 51`;
  await altered("adjustments", async (tx) => {
    await tx`update adjustments set amount = amount + 0.000001 where log = ${desk.log}`;
  });
  expect(await differing()).toEqual(
    expect.arrayContaining([
      "acknowledged/portal | log",
      "exports/portal | log",
      "month_closed | log",
    ]),
  );
});

async function fileOf(name: string): Promise<{ id: string; path: string }> {
  const [row] = await house.database.reader<{ id: string }[]>`
    select id from exports where log = ${desk.log} and origin = ${`closing/${name}/${OCTOBER}`}`;
  if (row === undefined) throw new Error("nothing was asked for");
  return { id: row.id, path: join(folder, desk.log, `${row.id}.csv`) };
}

test("a byte of a file that is another one, a file that is not whole, and one that is not there are found", async () => {
  const { path } = await fileOf("portal");
  const whole = await readFile(path);
  onTestFinished(() => writeFile(path, whole));
  const flipped = Buffer.from(whole);
  flipped[flipped.length - 3] = (flipped.at(-3) ?? 0) ^ 1;
  for (const bytes of [flipped, whole.subarray(0, -9), Buffer.from('"'), Buffer.alloc(0)]) {
    await writeFile(path, bytes);
    expect(await differing()).toEqual(["exports/portal | month_closed"]);
  }
  await rm(path);
  expect((await tied(OCTOBER)).differences).toMatchObject([
    { figure: "portal.sha256", leg: "exports/portal", value: "missing", against: "month_closed" },
  ]);
});

/** What `minutebook check` finds of what is kept of closed months. */
async function checked(): Promise<string[]> {
  const found: string[] = [];
  for await (const { table, column } of compareMonths(house.database.reader, desk.log)) {
    found.push(`${table} ${column}`);
  }
  return found;
}

test("a manifest that says something else of its file is found, and so is an export that failed", async () => {
  const { id } = await fileOf("allocation");
  const { superuser } = house.database;
  const [kept] = await superuser`select manifest from exports where id = ${id}`;
  const set = (change: object) =>
    superuser`update exports set ${superuser({ ...change })} where id = ${id}`;
  onTestFinished(async () => void (await set({ ...kept, error: null, state: "done" })));
  const other = String(kept?.["manifest"]).replace(
    '"drawn_compute_ms":"3',
    '"drawn_compute_ms":"4',
  );
  await set({ manifest: other });
  expect(await differing()).toEqual(["manifests/allocation | statement"]);
  expect(await checked()).toEqual([]);
  for (const manifest of ["{", String(kept?.["manifest"]).replace('"rows":"', '"rows":"1')]) {
    await set({ manifest });
    expect(await differing()).toEqual(["manifests/allocation | month_closed"]);
    expect(await checked()).toEqual(["exports allocation"]);
  }
  await set({ manifest: null, error: "internal", state: "failed" });
  expect(await differing()).toEqual(["exports/allocation | month_closed"]);
});

test("files that are not made yet are told as that, and are no difference", async () => {
  const { id } = await fileOf("account_map");
  const { superuser } = house.database;
  const [kept] = await superuser`select manifest, ended_at from exports where id = ${id}`;
  const set = (change: object) =>
    superuser`update exports set ${superuser({ ...change })} where id = ${id}`;
  await set({ state: "pending", manifest: null, ended_at: null });
  const { differences, not_yet } = await tied(OCTOBER);
  await set({ ...kept, state: "done" });
  expect({ differences, not_yet }).toEqual({ differences: [], not_yet: ["exports/account_map"] });
});

test("a consumer that has other totals is found, and one that has not come so far is waited for", async () => {
  await acknowledged(months, "second", "2160000.000001");
  const early = { consumer: "slow", months: [], up_to: "1" };
  await acknowledge(desk.finishing, { log: desk.log, by: "p_portal" }, early);
  const { differences, not_yet } = await tied(OCTOBER);
  expect(differences).toEqual([
    {
      figure: "billable_compute_ms",
      leg: "acknowledged/second",
      ...{ value: "2160000.000001", against: "log", expected: BILLED },
    },
  ]);
  expect(not_yet).toEqual([expect.stringMatching(/^acknowledged\/slow: 1 of [0-9]+ entries$/)]);
  expect(await differing(NOVEMBER)).toEqual([]);
});
