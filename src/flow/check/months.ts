/** What is kept of closed months, against the digests that their entries have. */
import type { EntryOf } from "../../core/entry.ts";
import { Manifest } from "../../core/export/manifest.ts";
import { type Json, parseCanonical } from "../../core/json.ts";
import { LineDigest } from "../../core/month/lines.ts";
import { encodeUtf8 } from "../../core/text.ts";
import type { Sql } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { type MonthEnd, readMonthEnds, readStatement } from "../../store/month-ends.ts";
import { allocationsOf, type LinePage, type OfMonth, packRollsOf } from "../month/read.ts";
import { hashOf } from "../month/statement.ts";
import { askedFiles } from "../tie-out/files.ts";
import { decodedAs, type Showing } from "../usage/show.ts";
import { finding } from "./compare.ts";
import type { Finding } from "./event.ts";

/** A month whose rows nobody has written yet has no statement either, and nothing to compare. */
export async function* compareMonths(sql: Sql, log: string): AsyncGenerator<Finding> {
  for (const end of await readMonthEnds(sql, log)) {
    const text = await readStatement(sql, log, end.month);
    if (text !== undefined) yield* compareMonth(sql, { log, end, text });
  }
}

interface Stated {
  log: string;
  end: MonthEnd;
  text: string;
}

async function* compareMonth(sql: Sql, { log, end, text }: Stated): AsyncGenerator<Finding> {
  const { index, month } = end;
  const closed = decodedAs("month_closed", (await readEntry(sql, log, index)).bytes);
  const { allocations_sha256, packs_sha256, statement_sha256 } = closed.body;
  const of = { log, month };
  const allocations = await digestOf(sql, of, allocationsOf);
  if (allocations !== allocations_sha256) {
    yield finding({ log, table: "allocations", index }, "sha256", allocations_sha256, allocations);
  }
  const packs = await digestOf(sql, of, packRollsOf);
  if (packs !== packs_sha256) {
    yield finding({ log, table: "pack_rolls", index }, "sha256", packs_sha256, packs);
  }
  const stated = hashOf(text);
  if (stated !== statement_sha256) {
    yield finding({ log, table: "statements", index }, "sha256", statement_sha256, stated);
  }
  yield* compareFiles(sql, closed);
}

/** What stands of the month's files that are made, against what was signed of them. */
async function* compareFiles(
  sql: Sql,
  { body, index, log }: EntryOf<"month_closed">,
): AsyncGenerator<Finding> {
  for (const [name, row] of await askedFiles(sql, { log, month: body.month })) {
    const json = row?.manifest;
    if (json === undefined || json === null) continue;
    const said = Manifest.safeParse(parseCanonical(encodeUtf8(json))).data;
    const found = said === undefined ? null : `${said.rows} rows, ${said.sha256}`;
    const signed = body.exports.find((file) => file.name === name);
    const expected = signed === undefined ? null : `${signed.rows} rows, ${signed.sha256}`;
    if (found === null || found !== expected) {
      yield finding({ log, table: "exports", index }, name, expected, found);
    }
  }
}

type Read = (showing: Showing, of: OfMonth, after?: string) => Promise<LinePage<Json>>;

async function digestOf(sql: Sql, of: OfMonth, read: Read): Promise<string> {
  const digest = new LineDigest();
  let after: string | undefined;
  do {
    const page = await read({ sql }, of, after);
    for (const line of page.lines) digest.add(line);
    after = page.next;
  } while (after !== undefined);
  return digest.end();
}
