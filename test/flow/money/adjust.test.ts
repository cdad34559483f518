import { afterAll, beforeAll, expect, test } from "vitest";
import type { AdjustmentLine } from "../../../src/core/control.ts";
import type { Body } from "../../../src/core/entry.ts";
import { Problem } from "../../../src/core/problem.ts";
import { account, type NewAccount } from "../../../src/flow/money/account.ts";
import { adjustmentEffect, assertHandMade } from "../../../src/flow/money/adjust.ts";
import { accountAt } from "../../../src/store/accounts.ts";
import { CARD, NOW, QUOTA } from "../../core/history.ts";
import {
  closeHouse,
  type Door,
  entriesOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
} from "../door.ts";
import { tell } from "../quota/told.ts";

let house: House;
/** Two processes of the service on one database. */
let doors: readonly [Door, Door];

beforeAll(async () => {
  house = await openHouse();
  doors = [house.open(), house.open()];
});
afterAll(() => closeHouse(house));

const LINE: AdjustmentLine = {
  amount: "-60000.000000",
  entry: "",
  namespace_id: "7",
  project_id: "50",
  reverses: "",
  usage_month: "2026-11-01",
};

/** A log on which each of these jobs has used a minute, and the entries of their usages. */
async function used(name: string, jobs = 1): Promise<{ log: string; usages: string[] }> {
  const [door] = doors;
  const log = await newLog(door, name);
  await newAgent(door, log, 1);
  const texts = Array.from({ length: jobs }, (_, i) =>
    reported(1, log, { counter: String(i + 1), job: { id: String(i + 1) } }),
  );
  const { results } = await door.submit(...texts);
  return { log, usages: results.map(({ index }) => String(index)) };
}

/** As a proposal is written where one person decides: its index, or the code that it is refused with. */
async function adjust(
  door: Door,
  log: string,
  lines: Partial<AdjustmentLine>[],
  more: Partial<Body<"adjustment">> = {},
): Promise<string> {
  const body: Body<"adjustment"> = {
    ...{ approval: "", billing_month: "2026-11-01", by: "p_finance", credit_run: "" },
    ...{ first_line: "0", lines: lines.map((line) => ({ ...LINE, ...line })) },
    ...{ reason: "goodwill", salt: CARD.salt, ticket: "INC-2026-11" },
    ...more,
  };
  const make = async (
    ...[prefix, at, tx]: Parameters<Parameters<Door["appender"]["control"]>[2]>
  ) => {
    await assertHandMade({ tx, prefix, at }, body);
    return body;
  };
  return await door.appender.control(log, "adjustment", make).then(
    ({ index }) => String(index),
    (error: unknown) => {
      if (!(error instanceof Problem)) throw error;
      return error.code;
    },
  );
}

test("T35: of two reversals of one line at once, in two processes, exactly one succeeds", async () => {
  const { log, usages } = await used("reversed at once");
  for (let round = 0; round < 8; round += 1) {
    const credit = await adjust(doors[0], log, [{ entry: usages[0] ?? "" }]);
    const back = { amount: "60000.000000", entry: usages[0] ?? "", reverses: `${credit}/0` };
    const answers = await Promise.all(doors.map((door) => adjust(door, log, [back])));
    expect(answers.filter((answer) => /^[0-9]+$/.test(answer))).toHaveLength(1);
    expect(answers.filter((answer) => /^already-(reversed|decided)$/.test(answer))).toHaveLength(1);
    expect(await adjust(doors[1], log, [back])).toBe("already-reversed");
  }
});

test("of two credits at once that together are more than the charge, exactly one succeeds", async () => {
  const { log, usages } = await used("credited at once");
  const most = [{ amount: "-40000.000000", entry: usages[0] ?? "" }];
  const answers = await Promise.all(doors.map((door) => adjust(door, log, most)));
  expect(answers).toContain("exceeds-original");
  expect(answers.filter((answer) => /^[0-9]+$/.test(answer))).toHaveLength(1);
});

test("what is left of a month is never below zero, whether of builds or of the month was taken", async () => {
  const { log, usages } = await used("a month", 3);
  const whole = { project_id: "", amount: "-100000.000000" };
  expect(await adjust(doors[0], log, [whole])).toMatch(/^[0-9]+$/);
  // 180,000 were charged: 80,000 are left of the month, and 60,000 of each build.
  expect(await adjust(doors[1], log, [{ entry: usages[0] ?? "" }])).toMatch(/^[0-9]+$/);
  expect(await adjust(doors[0], log, [{ entry: usages[1] ?? "" }])).toBe("exceeds-original");
  const rest = { entry: usages[1] ?? "", amount: "-20000.000000" };
  expect(await adjust(doors[0], log, [rest])).toMatch(/^[0-9]+$/);
  expect(await adjust(doors[1], log, [{ ...rest, amount: "-0.000001" }])).toBe("exceeds-original");
});

test("a month or a project without billable usage has nothing to adjust", async () => {
  const { log } = await used("nothing used");
  const none = [
    { namespace_id: "8" },
    { project_id: "51" },
    { usage_month: "2026-10-01" },
  ] as const;
  for (const line of none) {
    const billing_month = "usage_month" in line ? line.usage_month : "2026-11-01";
    const asked = { ...line, amount: "-0.000001" };
    expect(await adjust(doors[0], log, [asked], { billing_month })).toBe("not-billable-usage");
    expect(await adjust(doors[0], log, [{ ...asked, amount: "1.000000" }], { billing_month })).toBe(
      "not-billable-usage",
    );
  }
});

test("what is written by hand is part of no credit run, and names entries and lines that stand", async () => {
  const { log, usages } = await used("by hand");
  const line = { entry: usages[0] ?? "" };
  expect(await adjust(doors[0], log, [line], { credit_run: "1" })).toBe("invalid-request");
  expect(await adjust(doors[0], log, [line], { first_line: "1" })).toBe("invalid-request");
  expect(await adjust(doors[0], log, [{ entry: "0" }])).toBe("not-found");
  for (const reverses of ["9999999999999999999/0", "0/999", "00/0"]) {
    expect(await adjust(doors[0], log, [{ ...line, reverses }])).toBe("not-found");
  }
});

test("G26: a credit says who decided, why, and where the case is written down", async () => {
  const { log, usages } = await used("goodwill");
  const [entry = ""] = usages;
  await adjust(doors[0], log, [{ entry }]);
  const [written] = ofKind(await entriesOf(house.database.reader, log), "adjustment");
  expect(written?.body).toMatchObject({
    ...{ by: "p_finance", reason: "goodwill", ticket: "INC-2026-11" },
    lines: [{ amount: "-60000.000000", entry, namespace_id: "7" }],
  });
});

test("a proposal says what each month would come to", async () => {
  const { log } = await used("effect", 2);
  const lines = [LINE, { ...LINE, project_id: "", amount: "-0.000001" }];
  const effect = await doors[0].appender.together(log, (_, held) => {
    return adjustmentEffect(held, { lines });
  });
  expect(effect).toEqual({
    total: "-60000.000001",
    months: [
      {
        ...{ namespace_id: "7", usage_month: "2026-11-01" },
        ...{ from: "120000.000000", to: "59999.999999" },
      },
    ],
  });
});

test("T60: a credit lifts a namespace out of its level, and that is told once", async () => {
  const { log } = await used("told");
  const [door] = doors;
  await door.appender.control(log, "quota", () => ({ ...QUOTA, monthly_minutes: "1" }));
  const tellNow = () => tell(house.database.writer, log, door.now);
  expect(await tellNow()).toEqual(["quota.exceeded"]);
  await adjust(door, log, [LINE]);
  expect(await tellNow()).toEqual(["quota.recovered"]);
  expect(await tellNow()).toEqual([]);
});

const ACCOUNT: NewAccount = {
  account_id: "A-1",
  source: "portal",
  source_version: "1",
  subscription_id: "S-1",
};

test("an account's versions count within their source, and only the first may start in the past", async () => {
  const [door] = doors;
  const log = await newLog(door, "accounts");
  const put = async (input: Partial<NewAccount>, namespace_id = "7") =>
    await account(door, { log, namespace_id, by: "p_portal" }, { ...ACCOUNT, ...input });
  const first = await put({ effective_from: "2026-01-01T00:00:00.000Z" });
  expect(await put({ effective_from: "2026-01-01T00:00:00.000Z" })).toMatchObject({
    ...{ index: first.index, written: false },
  });
  await expect(put({ account_id: "A-2" })).rejects.toMatchObject({ code: "stale-source-version" });
  const later = { source_version: "2", effective_from: NOW };
  await expect(put(later)).rejects.toMatchObject({ code: "starts-in-the-past" });
  expect(await put({ source_version: "2", account_id: "A-2" })).toMatchObject({ written: true });
  expect(await put({ source: "other" })).toMatchObject({ written: true });
});

test("in force is the namespace's newest account, else that of the instance, as of an entry", async () => {
  const [door] = doors;
  const log = await newLog(door, "accounts in force");
  const put = async (namespace_id: string, input: Partial<NewAccount>) =>
    await account(door, { log, namespace_id, by: "p_portal" }, { ...ACCOUNT, ...input });
  const at = async (instant: string, below?: bigint) => {
    const found = await accountAt(house.database.reader, log, "7", instant, below);
    return found?.account_id;
  };
  expect(await at(NOW)).toBeUndefined();
  const spring = "2026-03-01T00:00:00.000Z";
  await put("", { account_id: "all", effective_from: "2026-01-01T00:00:00.000Z" });
  const own = await put("7", { account_id: "own", effective_from: spring });
  await put("7", {
    account_id: "next",
    effective_from: "2026-12-01T00:00:00.000Z",
    source_version: "2",
  });
  expect(await at("2025-12-31T23:59:59.999Z")).toBeUndefined();
  expect(await at("2026-02-28T23:59:59.999Z")).toBe("all");
  expect(await at(spring)).toBe("own");
  expect(await at(NOW, own.index)).toBe("all");
  expect(await at("2026-12-01T00:00:00.000Z")).toBe("next");
});
