/** What is kept of a closed month: its statement as it was written, under the log's keys, and its lines. */
import { parseCanonical } from "../../core/json.ts";
import type { AllocationLine, PackLine } from "../../core/month/lines.ts";
import { Statement, statementText } from "../../core/month/statement.ts";
import { Problem } from "../../core/problem.ts";
import { encodeUtf8 } from "../../core/text.ts";
import type { Sql } from "../../store/connect.ts";
import {
  readAllocations,
  readHeldStatement,
  readPackRolls,
  readStatement,
} from "../../store/month-ends.ts";
import type { Keyring } from "../key/keyring.ts";
import { signText } from "../key/sign-text.ts";
import { assertSealed, type Proofs } from "../log/prove.ts";
import { notAsSigned } from "../log/refusal.ts";
import { decodedAs, type Showing } from "../usage/show.ts";
import { hashOf } from "./statement.ts";

export interface OfMonth {
  log: string;
  month: string;
}

/** Its canonical JSON, to the byte. @throws Problem `not-found`: the month is not closed; `not-as-signed` */
export async function statementJson({ sql }: Showing, of: OfMonth): Promise<string> {
  return (await heldStatement(sql, of)).text;
}

/** @throws Problem as `statementJson` */
export async function readStatementOf(showing: Showing, of: OfMonth): Promise<Statement> {
  return Statement.parse(parseCanonical(encodeUtf8(await statementJson(showing, of))));
}

/**
 * The statement's hash under the keys of the log's checkpoints that are in force now. What was read back is held to
 * the entry that closed the month, and that entry to the archive: who can write the database has nothing signed.
 *
 * @throws Problem as `statementJson` and `assertSealed`, and `signer-unavailable`, `busy`
 */
export async function statementNote(
  { keyring, proofs, sql }: Showing & { keyring: Pick<Keyring, "standing">; proofs: Proofs },
  of: OfMonth,
): Promise<string> {
  const { closed, text } = await heldStatement(sql, of);
  await assertSealed(proofs, of.log, closed);
  return await signText(keyring, of.log, (origin) => statementText(origin, of.month, text));
}

/** With the entry that has its hash. */
async function heldStatement(sql: Sql, { log, month }: OfMonth) {
  const held = await readHeldStatement(sql, log, month);
  if (held === undefined) throw new Problem("not-found");
  const { closed, text } = held;
  const altered = notAsSigned(`the statement of ${month} of ${log}`);
  if (closed === undefined) throw altered;
  const { body } = decodedAs("month_closed", closed.bytes);
  if (body.month !== month || body.statement_sha256 !== hashOf(text)) throw altered;
  return { closed, text };
}

const PAGE = 1_000;

/** Lines of a digest of the month, in their order; `next`, where there is more, is the `after` of the next page. */
export interface LinePage<Line> extends OfMonth {
  lines: Line[];
  next?: string;
}

/** @param after `<namespace>/<usage month>` of the last line of the page before */
export async function allocationsOf(
  { sql }: Showing,
  of: OfMonth,
  after?: string,
): Promise<LinePage<AllocationLine>> {
  await assertClosed(sql, of);
  const [namespace = "", usageMonth = ""] = after?.split("/") ?? [];
  const place = after === undefined ? undefined : { namespace, usageMonth };
  const rows = await readAllocations(sql, of, { after: place, limit: PAGE });
  const lines = rows.map(({ drawn: _, packs, ...row }) => ({
    ...row,
    packs: JSON.parse(packs) as AllocationLine["packs"],
  }));
  const last = rows.at(-1);
  const next = last && `${last.namespace_id}/${last.usage_month}`;
  return { ...of, lines, ...nextOf(rows, next) };
}

/** @param after `<namespace>/<pack>` of the last line of the page before */
export async function packRollsOf(
  { sql }: Showing,
  of: OfMonth,
  after?: string,
): Promise<LinePage<PackLine>> {
  await assertClosed(sql, of);
  const [namespace = "", pack = ""] = after?.split("/") ?? [];
  const place = after === undefined ? undefined : { namespace, pack };
  const rows = await readPackRolls(sql, of, { after: place, limit: PAGE });
  const last = rows.at(-1);
  const next = last && `${last.namespace_id}/${last.pack}`;
  return { ...of, lines: rows, ...nextOf(rows, next) };
}

async function assertClosed(sql: Sql, { log, month }: OfMonth): Promise<void> {
  if ((await readStatement(sql, log, month)) === undefined) throw new Problem("not-found");
}

function nextOf(rows: readonly unknown[], next: string | undefined): { next?: string } {
  return next === undefined || rows.length < PAGE ? {} : { next };
}
