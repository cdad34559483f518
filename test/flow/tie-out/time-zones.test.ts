/** Time zones are for showing: whatever the process and its sessions live in, each byte is the same. */
import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { parseCanonical } from "../../../src/core/json.ts";
import { Statement } from "../../../src/core/month/statement.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { CLOSING_SET, closingSet } from "../../../src/flow/export/closing-set.ts";
import { contentOf } from "../../../src/flow/export/content.ts";
import { SOURCES } from "../../../src/flow/export/sources.ts";
import { statementJson } from "../../../src/flow/month/read.ts";
import { tieOut } from "../../../src/flow/tie-out/tie-out.ts";
import { ciMinutesUsage } from "../../../src/flow/usage/gitlab.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import { usage } from "../../../src/flow/usage/usage.ts";
import { connect, type Sql } from "../../../src/store/connect.ts";
import { statementPage } from "../../../src/web/statement.tsx";
import { type ClosedMonths, NOVEMBER, OCTOBER, openClosedMonths } from "./closed-months.ts";

const NAMES = [...CLOSING_SET, "entries"] as const;
const FORMATS = ["csv", "ndjson", "parquet"] as const;

let months: ClosedMonths;
beforeAll(async () => {
  months = await openClosedMonths();
});
afterAll(() => months.close());

interface Said {
  /** Where the session lives, and how far the process's clock is behind UTC at the edge of a month. */
  lives: { session: string; minutes: number };
  /** All that is said of both months. */
  said: string;
}

async function saidIn(zone: string): Promise<Said> {
  const { superuser, urls } = months.house.database;
  const name = superuser(new URL(urls.reader).pathname.slice(1));
  await superuser`alter database ${name} set timezone to ${superuser.unsafe(`'${zone}'`)}`;
  vi.stubEnv("TZ", zone);
  const sql = connect(urls.reader, { max: 2 });
  try {
    const [row] = await sql`select current_setting('timezone') as session`;
    const minutes = new Date("2026-10-31T23:59:59.999Z").getTimezoneOffset();
    const lives = { session: String(row?.["session"]), minutes };
    return { lives, said: JSON.stringify(await all(sql)) };
  } finally {
    await sql.end();
    vi.unstubAllEnvs();
  }
}

async function all(sql: Sql): Promise<object[]> {
  const { log, finishing } = months.desk;
  const said: object[] = [];
  for (const month of [OCTOBER, NOVEMBER]) {
    const reading = { sql, clock: finishing.clock };
    const [end] = await sql<{ closing: bigint }[]>`
      select closing from month_ends where log = ${log} and month = ${month}`;
    const closing = end?.closing ?? 0n;
    const asked = { log, month, namespace: 9n, viewer: undefined, visible: undefined };
    said.push({
      files: await closingSet(sql, { log, month, closing }),
      forms: await hashesOf(sql, { log, asOf: closing, parameters: { month } }),
      statement: await statementJson({ sql }, { log, month }),
      tied: await tieOut({ sql, files: months.files }, { log, month }),
      used: await usage(reading, { log, group: ["namespace", "machine_type"], from: month }),
      gitlab: await ciMinutesUsage(reading, asked),
    });
  }
  return said;
}

async function hashesOf(
  sql: Sql,
  origin: { log: string; asOf: bigint; parameters: { month: string } },
): Promise<string[]> {
  const hashes: string[] = [];
  for (const name of NAMES) {
    for (const format of FORMATS) {
      const digest = createHash("sha256");
      await snapshot(sql, async (tx) => {
        const { bytes } = contentOf(SOURCES[name]({ tx, ...origin }), format);
        for await (const chunk of bytes) digest.update(chunk);
      });
      hashes.push(digest.digest("base64"));
    }
  }
  return hashes;
}

test("figures, files of every form, statement and tie-out are the same bytes in any time zone, at the edges of months too", async () => {
  const utc = await saidIn("UTC");
  const ahead = await saidIn("Pacific/Kiritimati");
  const behind = await saidIn("America/Los_Angeles");
  expect([utc, ahead, behind].map(({ lives }) => lives)).toEqual([
    { session: "UTC", minutes: 0 },
    { session: "Pacific/Kiritimati", minutes: -14 * 60 },
    { session: "America/Los_Angeles", minutes: 7 * 60 },
  ]);
  expect(ahead.said).toBe(utc.said);
  expect(behind.said).toBe(utc.said);
});

test("the statement's page shows instants in a zone that is named, and every figure as before", async () => {
  const { log } = months.desk;
  const text = await statementJson({ sql: months.house.database.reader }, { log, month: OCTOBER });
  const statement = Statement.parse(parseCanonical(encodeUtf8(text)));
  const plain = statementPage(statement).html;
  const zoned = statementPage(statement, "Pacific/Kiritimati").html;
  expect(plain).toContain("2026-11-04T00:00:00.000Z");
  expect(zoned).toContain("2026-11-04 14:00:00.000 GMT+14:00");
  expect(zoned).toContain("Compute usage, October 2026");
  const figures = (html: string): string[] => html.match(/-?[0-9]+\.[0-9]{2,6}(?![0-9])/g) ?? [];
  expect(figures(zoned).filter((figure) => !figure.endsWith(".000"))).toEqual(
    figures(plain).filter((figure) => !figure.endsWith(".000")),
  );
});
