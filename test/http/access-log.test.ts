/** What is written down of reads and changes before they are answered, and how each day ends on the log. */
import { createHash, randomBytes } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { decodeEntry } from "../../src/core/entry.ts";
import { checkDay, digestDays } from "../../src/flow/access/digest.ts";
import { closeDays } from "../../src/store/access-log.ts";
import type { Sql, Transaction } from "../../src/store/connect.ts";
import { minutebook } from "../command/terminal.ts";
import { reported } from "../flow/door.ts";
import { type Answered, ask, type House, newLog, openHouse, tokenOf } from "./house.ts";

let house: House;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  ({ log, token } = await newLog(house, "watched", 1));
});
afterAll(() => house.close());

interface Row {
  log: string;
  number: bigint;
  by: string;
  roles: string;
  method: string;
  route: string;
  target: string;
  status: number;
  code: string | null;
}

const rows = async (): Promise<Row[]> => [
  ...(await house.database.reader<Row[]>`
    select log, number, by, roles, method, route, target, status, code
    from access_log
    order by at, number`),
];

/** The rows that a request left behind. */
async function left(request: () => Promise<Answered>): Promise<[Answered, Row[]]> {
  const before = await rows();
  const answered = await request();
  return [answered, (await rows()).slice(before.length)];
}

test("a read leaves one row: who, as what, which route, and nothing of the query or the token", async () => {
  const auditor = await tokenOf(["auditor"]);
  const [answered, found] = await left(() =>
    ask(house, `GET /v1/usage?log=${log}&namespace=7`, { token: auditor }),
  );
  expect(answered.status).toBe(200);
  expect(found).toEqual([
    {
      ...{ log, number: expect.any(BigInt), by: expect.stringMatching(/^p_/), roles: "auditor" },
      ...{ method: "GET", route: "/v1/usage", target: "/v1/usage", status: 200, code: null },
    },
  ]);
  const all = await house.database.reader`select access_log::text as text from access_log`;
  const text = JSON.stringify(all);
  expect(text).not.toContain("namespace=7");
  expect(text).not.toContain(auditor.split(".")[2]);
});

test("a change leaves a row, made or refused and why, and so does who may not, as nobody's role", async () => {
  const limit = { effective_from: "2026-01-01T00:00:00.000Z", monthly_minutes: "100", source: "s" };
  const put = (source_version: string, as: string) =>
    ask(house, `PUT /v1/quotas/${log}/7`, {
      token: as,
      json: { ...limit, beyond: "stop", source_version },
    });
  const platform = await tokenOf(["platform"]);
  const statuses = [];
  const codes: unknown[] = [];
  for (const [version, as] of [
    ["2", platform],
    ["1", platform],
    ["3", await tokenOf(["viewer"])],
  ] as const) {
    const [answered, found] = await left(() => put(version, as));
    statuses.push(answered.status);
    expect(found).toMatchObject([{ log, method: "PUT", target: `/v1/quotas/${log}/7` }]);
    expect(found[0]?.status).toBe(answered.status);
    codes.push(found[0]?.code);
    expect(found[0]?.roles).toBe(answered.status === 404 ? "" : "platform");
  }
  expect(statuses).toEqual([201, 409, 404]);
  expect(codes).toEqual([null, "stale-source-version", "not-found"]);
});

test("another tenant writes nothing into a log's access log: what they ask of it is about none", async () => {
  const stranger = await tokenOf(["platform"], { logs: ["f".repeat(32)] });
  const pack = { minutes: "1", namespace_id: "7", pack_id: "x", source: "s", source_version: "1" };
  for (const [route, json] of [
    [`PUT /v1/quotas/${log}/7`, {}],
    [`GET /v1/quotas/${log}/7`, undefined],
    [`GET /v1/access/${log}?day=2026-11-29`, undefined],
    [`GET /logs/${log}/tile/entries/000`, undefined],
    ["POST /v1/packs", { log, ...pack }],
  ] as const) {
    const [answered, found] = await left(() => ask(house, route, { token: stranger, json }));
    expect(answered.status).toBe(404);
    expect(found).toMatchObject([{ log: "", status: 404, code: "not-found" }]);
  }
});

test("what is about a log that there is not is written down as about none", async () => {
  const [, found] = await left(() => ask(house, `GET /v1/logs/${"f".repeat(32)}/holds`, { token }));
  expect(found).toMatchObject([{ log: "", status: 404, route: "/v1/logs/:log/holds" }]);
});

test("what runners send, decisions, figures of the process and hashes leave no row", async () => {
  const jobs = [{ job_id: "1", namespace_id: "7", ask: "start" }];
  const [, found] = await left(async () => {
    await ask(house, "POST /v1/reports", { jose: reported(1, log) });
    await ask(house, "GET /metrics", { token });
    await ask(house, "GET /livez");
    await ask(house, `GET /logs/${log}/checkpoint`, { token });
    return await ask(house, "POST /v1/decisions", { token, json: { log, jobs } });
  });
  expect(found).toEqual([]);
});

test("who reads entries of a log that is not public leaves a row for each bundle", async () => {
  const auditor = await tokenOf(["auditor"]);
  const size = await vi.waitUntil(
    async () => {
      const { text } = await ask(house, `GET /logs/${log}/checkpoint`, { token: auditor });
      return text.split("\n")[1];
    },
    { timeout: 20_000 },
  );
  const path = `/logs/${log}/tile/entries/000.p/${size}`;
  const [answered, found] = await left(() => ask(house, `GET ${path}`, { token: auditor }));
  expect(answered.status).toBe(200);
  expect(found).toMatchObject([{ log, target: path, roles: "auditor" }]);
});

test("what cannot be written down is not answered: busy, and no figure leaves", async () => {
  const { owner } = house.database;
  await owner`revoke insert on access_log from minutebook_writer`;
  const refused = await ask(house, `GET /v1/usage?log=${log}`, { token });
  await owner`grant insert on access_log to minutebook_writer`;
  expect([refused.status, refused.json["code"]]).toEqual([503, "busy"]);
  expect(refused.text).not.toContain("rows");
  expect((await ask(house, `GET /v1/usage?log=${log}`, { token })).status).toBe(200);
});

/** Rows as they would be had somebody asked on that day. */
async function asked(
  day: string,
  count: number,
  sql: Sql | Transaction = house.database.writer,
  code: string | null = null,
): Promise<void> {
  await sql`
    with mark as (
      update access_marks set number = number + ${count} where log = ${log} returning number
    )
    insert into access_log
      (log, number, day, at, by, roles, method, route, target, status, code, request)
    select
      ${log}, number - ${count} + n, ${day}, ${new Date(`${day}T12:00:00.000Z`)},
      ${`p_${"a".repeat(22)}`}, 'auditor', 'GET', '/v1/usage', '/v1/usage', 200, ${code},
      ${"0f8fad5b-d9cb-469f-a165-70867728950e"}
    from mark, generate_series(1, ${count}) as n`;
}

const digesting = () => {
  const random = (bytes: number) => new Uint8Array(randomBytes(bytes));
  return { sql: house.database.writer, appender: house.appender, random };
};

const failed = (error: unknown): never => {
  throw error;
};

async function digests(): Promise<{ day: string; lines: string }[]> {
  const found = await house.database.reader<{ bytes: Uint8Array }[]>`
    select bytes from entries where log = ${log} and kind = 'access_digest' order by index`;
  return found.map(({ bytes }) => {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string" || entry.kind !== "access_digest") throw new Error("no digest");
    return { day: entry.body.day, lines: entry.body.lines };
  });
}

test("each day with rows that is over becomes one entry, whoever of two writes it; a day without has none", async () => {
  await asked("2026-01-05", 1_500);
  await asked("2026-01-07", 2);
  await Promise.all([digestDays(digesting(), failed), digestDays(digesting(), failed)]);
  expect(await digests()).toEqual([
    { day: "2026-01-05", lines: "1500" },
    { day: "2026-01-07", lines: "2" },
  ]);
  expect(await digestDays(digesting(), failed)).toBe(0);
  const { reader } = house.database;
  expect(await checkDay(reader, log, "2026-01-05")).toMatchObject({ closed: true, agrees: true });
  expect(await checkDay(reader, log, "2026-01-06")).toMatchObject({ agrees: true });
});

test("a day is closed only when whoever was writing rows of it has ended", async () => {
  const { writer, superuser } = house.database;
  await writer`update access_marks set closed_through = '2026-01-08' where log = ${log}`;
  let closing: Promise<void> | undefined;
  await writer.begin(async (tx) => {
    await asked("2026-01-09", 1, tx);
    closing = closeDays(house.database.owner);
    await vi.waitUntil(
      async () => {
        const waiting = await superuser`
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
          and query like '%closed_through%'`;
        return waiting.length > 0;
      },
      { timeout: 20_000 },
    );
  });
  await closing;
  expect(await digestDays(digesting(), failed)).toBe(1);
  expect((await digests()).at(-1)).toEqual({ day: "2026-01-09", lines: "1" });
});

/** As a version that knew no codes hashed what `asked` inserts. */
async function uncodedDigest(day: string): Promise<{ lines: string; lines_sha256: string }> {
  const { reader } = house.database;
  const found = await reader`
    select number from access_log where log = ${log} and day = ${day} order by number`;
  const lines = found.map(({ number }) => [
    `{"at":"${day}T12:00:00.000Z","by":"p_${"a".repeat(22)}","day":"${day}","log":"${log}","method":"GET",`,
    `"number":"${number}","request":"0f8fad5b-d9cb-469f-a165-70867728950e","roles":"auditor",`,
    '"route":"/v1/usage","status":"200","target":"/v1/usage"}\n',
  ]);
  const sha256 = createHash("sha256").update(lines.flat().join(""));
  return { lines: String(found.length), lines_sha256: sha256.digest("base64") };
}

test("a row without a code is hashed as before there were any, and a code is hashed with its row", async () => {
  const { reader, writer } = house.database;
  const isHashedAsBefore = async (day: string, code: string | null) => {
    await asked(day, 1, writer, code);
    await digestDays(digesting(), failed);
    const { agrees, coded, stated } = await checkDay(reader, log, day);
    expect([agrees, coded]).toEqual([true, true]);
    return stated?.lines_sha256 === (await uncodedDigest(day)).lines_sha256;
  };
  expect(await isHashedAsBefore("2026-01-10", null)).toBe(true);
  expect(await isHashedAsBefore("2026-01-11", "same-person")).toBe(false);
});

test("an entry of a process that knows no codes agrees with rows that have some, and what it leaves out is said", async () => {
  const day = "2026-01-12";
  await asked(day, 2, house.database.writer, "same-person");
  const digest = await uncodedDigest(day);
  await house.appender.control(log, "access_digest", async () => {
    return { day, ...digest, salt: Buffer.alloc(16, 1).toString("base64") };
  });
  const check = await checkDay(house.database.reader, log, day);
  expect(check).toMatchObject({ agrees: true, coded: false, found: digest });
});

test("no row comes to a day that is closed, whatever the clock says", async () => {
  const { writer } = house.database;
  const [mark] = await writer`select closed_through from access_marks where log = ${log}`;
  await writer`update access_marks set closed_through = '2999-01-01' where log = ${log}`;
  await ask(house, `GET /v1/usage?log=${log}`, { token });
  const [newest] = await writer`
    select day from access_log where log = ${log} order by number desc limit 1`;
  expect(newest).toEqual({ day: "2999-01-02" });
  await writer`update access_marks set closed_through = ${mark?.["closed_through"]} where log = ${log}`;
});

test("a row that is changed or taken away contradicts the day's entry", async () => {
  const { reader, superuser } = house.database;
  await superuser`alter table access_log disable trigger access_log_append_only`;
  await superuser`update access_log set by = 'p_other' where log = ${log} and day = '2026-01-07'`;
  expect(await checkDay(reader, log, "2026-01-07")).toMatchObject({ agrees: false });
  await superuser`delete from access_log where log = ${log} and day = '2026-01-05' and number = 700`;
  expect(await checkDay(reader, log, "2026-01-05")).toMatchObject({
    agrees: false,
    found: { lines: expect.not.stringMatching(/^1500$/) },
    stated: { lines: "1500" },
  });
  await superuser`update access_log set code = 'not-found' where log = ${log} and day = '2026-01-11'`;
  expect(await checkDay(reader, log, "2026-01-11")).toMatchObject({ agrees: false });
  await superuser`alter table access_log enable always trigger access_log_append_only`;
});

test("the command works a day out again, and says whether the log agrees", async () => {
  const check = (day: string) =>
    minutebook(["access", "check", "--log", log, "--day", day], {
      READER_DATABASE_URL: house.database.urls.reader,
    });
  const good = await check("2026-01-09");
  expect([good.status, good.stdout]).toEqual([0, expect.stringMatching(/^AGREES: .* 1 rows/)]);
  const empty = await check("2026-01-06");
  expect([empty.status, empty.stdout]).toEqual([
    0,
    expect.stringContaining("no rows, and no entry"),
  ]);
  const bad = await check("2026-01-05");
  expect([bad.status, bad.stdout]).toEqual([1, expect.stringMatching(/1 missing .* 1500 rows/)]);
  expect((await check("2999-01-03")).status).toBe(2);
  expect((await check("2026-02-30")).stderr).toContain("invalid-usage");
});

test("an auditor reads a day of it page by page, with the entry that seals it", async () => {
  const auditor = await tokenOf(["auditor"]);
  const page = async (after: string) =>
    (await ask(house, `GET /v1/access/${log}?day=2026-01-05${after}`, { token: auditor })).json;
  const first = await page("");
  expect(first).toMatchObject({ log, day: "2026-01-05", closed: true, digest: { lines: "1500" } });
  expect(first["lines"]).toHaveLength(1_000);
  const second = await page(`&after=${first["next"]}`);
  expect(second["next"]).toBeUndefined();
  expect((second["lines"] as unknown[]).length).toBe(499); // one was taken away above
});
