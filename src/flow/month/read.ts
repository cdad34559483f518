/** What is kept of a closed month: its statement as it was written, under the log's keys, and its lines. */
import { parseCanonical } from "../../core/json.ts";
import type { AllocationLine, PackLine } from "../../core/month/lines.ts";
import { Statement, statementText } from "../../core/month/statement.ts";
import { Problem } from "../../core/problem.ts";
import { encodeUtf8 } from "../../core/text.ts";
import { readAllocations, readPackRolls, readStatement } from "../../store/month-ends.ts";
import type { Keyring } from "../key/keyring.ts";
import { signText } from "../key/sign-text.ts";
import type { Showing } from "../usage/show.ts";

export interface OfMonth {
  log: string;
  month: string;
}

/** Its canonical JSON, to the byte. @throws Problem `not-found`: the month is not closed */
export async function statementJson({ sql }: Showing, { log, month }: OfMonth): Promise<string> {
  const text = await readStatement(sql, log, month);
  if (text === undefined) throw new Problem("not-found");
  return text;
}

/** @throws Problem `not-found` */
export async function readStatementOf(showing: Showing, of: OfMonth): Promise<Statement> {
  return Statement.parse(parseCanonical(encodeUtf8(await statementJson(showing, of))));
}

/**
 * The statement's hash under the keys of the log's checkpoints that are in force now.
 *
 * @throws Problem `not-found`, `signer-unavailable`, `busy`
 */
export async function statementNote(
  { keyring, sql }: Showing & { keyring: Keyring },
  of: OfMonth,
): Promise<string> {
  const json = await statementJson({ sql }, of);
  return await signText(keyring, of.log, (origin) => statementText(origin, of.month, json));
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
  await statementJson({ sql }, of);
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
  await statementJson({ sql }, of);
  const [namespace = "", pack = ""] = after?.split("/") ?? [];
  const place = after === undefined ? undefined : { namespace, pack };
  const rows = await readPackRolls(sql, of, { after: place, limit: PAGE });
  const last = rows.at(-1);
  const next = last && `${last.namespace_id}/${last.pack}`;
  return { ...of, lines: rows, ...nextOf(rows, next) };
}

function nextOf(rows: readonly unknown[], next: string | undefined): { next?: string } {
  return next === undefined || rows.length < PAGE ? {} : { next };
}
