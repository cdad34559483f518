/** What another card would have charged, of a log as it stands; nothing of it changes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import { type Difference, Differences } from "../../../src/core/what-if.ts";
import { type WhatIf, type WhatIfPart, whatIf } from "../../../src/flow/money/what-if.ts";
import { CARD } from "../../core/history.ts";
import { type Worked, work } from "../credit/crediting.ts";
import { closeHouse, type Door, type House, newAgent, newLog, openHouse } from "../door.ts";

let house: House;
let door: Door;
beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));

const DEARER = {
  not_billable: [],
  project_factors: {},
  runner_factors: { small: "1.5" },
  tracking: "hosted",
} as const;
const MONTHS = { from: "2026-09-01", to: "2026-11-01" };
const salt = Buffer.alloc(16).toString("base64");
const by = { approval: "", by: "p_finance", salt };

/** Each part is over after one page. */
function hurried(): { now(): number } {
  let time = 0;
  return { now: () => (time += 3_600_000) };
}

async function ask(log: string, asked: Partial<WhatIf> = {}): Promise<WhatIfPart> {
  const card = { ...DEARER, not_billable: [] };
  return await whatIf({ sql: house.database.reader, clock: hurried() }, log, {
    ...{ card, ...MONTHS },
    ...asked,
  });
}

function exact(row: WhatIfPart["rows"][number]): Difference {
  const { billing_month: _, difference: __, ...named } = row;
  const [stands, would] = [parseSignedComputeMs(row.stands), parseSignedComputeMs(row.would)];
  return { ...named, jobs: BigInt(row.jobs), unrated: BigInt(row.unrated), stands, would };
}

async function figures(log: string): Promise<unknown> {
  return await house.database.reader`
    select billing_month, count(*) as jobs, sum(compute_ms) as compute_ms
    from entries
    where log = ${log} and kind = 'usage'
    group by billing_month
    order by billing_month`;
}

async function logOf(name: string, builds: readonly Worked[]): Promise<string> {
  const log = await newLog(door, name);
  await newAgent(door, log, 7);
  await work(door, { log, seed: 7 }, builds);
  return log;
}

test("a card that changes after the close changes no figure: the report shows the difference only (T37)", async () => {
  const log = await logOf("closed", [
    { namespace: 1, finished: "2026-09-20T12:00:00.000Z" },
    { namespace: 1, finished: "2026-10-20T12:00:00.000Z", duration: 1n },
    { namespace: 2, finished: "2026-10-20T12:00:00.000Z", reason: "runner_system_failure" },
    { namespace: 2, finished: "2026-11-02T12:00:00.000Z" },
  ]);
  for (const month of ["2026-09-01", "2026-10-01"]) {
    await door.appender.control(log, "month_closing", () => ({ ...by, month }));
  }
  const before = await figures(log);
  await door.appender.control(log, "rate_card", () => {
    const effective_from = "2026-11-21T00:00:00.000Z";
    return { ...CARD, ...DEARER, ...by, not_billable: [], project_factors: {}, effective_from };
  });
  const { rows } = await ask(log);
  expect(rows).toEqual([
    {
      ...{ namespace_id: "1", usage_month: "2026-09-01", billing_month: "2026-11-01" },
      ...{ machine_type: "small", jobs: "1", unrated: "0" },
      ...{ stands: "60000.000000", would: "90000.000000", difference: "30000.000000" },
    },
    {
      ...{ namespace_id: "1", usage_month: "2026-10-01", billing_month: "2026-11-01" },
      ...{ machine_type: "small", jobs: "1", unrated: "0" },
      ...{ stands: "1.000000", would: "1.500000", difference: "0.500000" },
    },
    {
      ...{ namespace_id: "2", usage_month: "2026-10-01", billing_month: "2026-11-01" },
      ...{ machine_type: "small", jobs: "1", unrated: "0" },
      ...{ stands: "0.000000", would: "90000.000000", difference: "90000.000000" },
    },
  ]);
  expect(await figures(log)).toEqual(before);
});

test("the parts of a long log come to the same as all of it, though it goes on growing", async () => {
  const builds = Array.from({ length: 1_300 }, (_, i) => {
    const finished = i % 2 === 0 ? "2026-09-20T12:00:00.000Z" : "2026-10-20T12:00:00.000Z";
    return { namespace: 1 + (i % 3), project: 50 + (i % 2), finished, duration: BigInt(i) };
  });
  const log = await logOf("long", builds.slice(0, 900));
  // What it was rated by then is what is asked for then: this class is not the earlier builds'.
  await door.appender.control(log, "project_class", () => {
    const effective_from = "2026-01-02T00:00:00.000Z";
    return { ...by, class: "open_source", effective_from, project_id: "51", source: "" };
  });
  await work(door, { log, seed: 7, first: 901 }, builds.slice(900));
  const card = { ...DEARER, not_billable: [], project_factors: { open_source: "0.1" } };
  const first = await ask(log, { card });
  await work(door, { log, seed: 7, first: 2_001 }, builds.slice(0, 10));
  const { as_of, next = "" } = first;
  const second = await ask(log, { card, as_of, after: next });
  expect(second.next).toBeUndefined();
  const sums = new Differences();
  for (const row of [...first.rows, ...second.rows]) sums.merge(exact(row));

  const naive = new Map<string, { stands: bigint; would: bigint }>();
  for (const [i, { duration, finished, namespace, project }] of builds.entries()) {
    const key = `${finished.slice(0, 7)}-01 ${namespace}`;
    const { stands, would } = naive.get(key) ?? { stands: 0n, would: 0n };
    const isOpen = i >= 900 && project === 51;
    naive.set(key, {
      stands: stands + duration * (isOpen ? 500_000n : 1_000_000n),
      would: would + duration * (isOpen ? 100_000n : 1_500_000n),
    });
  }
  const rows = sums.rows();
  expect(rows).toHaveLength(naive.size);
  for (const { namespace_id, stands, usage_month, would } of rows) {
    expect({ stands, would }).toEqual(naive.get(`${usage_month} ${namespace_id}`));
  }
});

test("a card that could not be written is not asked about either", async () => {
  const log = await logOf("refused", []);
  const card = { ...DEARER, not_billable: [], runner_factors: { small: "1/0" } };
  await expect(ask(log, { card })).rejects.toMatchObject({ code: "invalid-factor" });
  await expect(ask(log, { as_of: "99" })).rejects.toMatchObject({ code: "invalid-request" });
  await expect(ask("0".repeat(32))).rejects.toMatchObject({ code: "not-found" });
});
