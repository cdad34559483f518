/** The files of a closed month: `month_closed` says their hashes, and whoever has the log makes them again. */
import { createHash } from "node:crypto";
import type { Body } from "../../core/entry.ts";
import type { Parameters } from "../../core/export/manifest.ts";
import type { ExportName, Format, TableName } from "../../core/export/tables.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { readMonthEnds } from "../../store/month-ends.ts";
import { bePatient } from "../month/patience.ts";
import { decodedAs, snapshot } from "../usage/show.ts";
import { contentOf } from "./content.ts";
import { SOURCES } from "./sources.ts";

/** In the order in which `month_closed` has them. */
export const CLOSING_SET = [
  "account_map",
  "allocation",
  "monthly_hosted_runner",
  "monthly_namespace",
  "monthly_project",
  "pack_rollforward",
  "portal",
] as const satisfies readonly TableName[];

/** Name, rows and base64 SHA-256 of each. */
export type ClosingSet = Body<"month_closed">["exports"];

interface OfMonth {
  log: string;
  month: string;
  /** Of the cut-off. */
  closing: bigint;
}

/** As CSV, as of the cut-off: of entries before it alone, so that they are the same for ever. */
export async function closingSet(sql: Sql, of: OfMonth): Promise<ClosingSet> {
  return await snapshot(sql, async (tx) => {
    await bePatient(tx);
    const files = [];
    for (const name of CLOSING_SET) files.push({ name, ...(await digestOf(tx, name, of)) });
    return files;
  });
}

async function digestOf(
  tx: Transaction,
  name: (typeof CLOSING_SET)[number],
  { log, month, closing }: OfMonth,
): Promise<{ rows: string; sha256: string }> {
  const parameters = name === "account_map" ? {} : { month };
  const sheet = SOURCES[name]({ tx, log, asOf: closing, parameters });
  const { bytes, figures } = contentOf(sheet, "csv");
  const digest = createHash("sha256");
  for await (const chunk of bytes) digest.update(chunk);
  const { rows } = await figures();
  return { rows: String(rows), sha256: digest.digest("base64") };
}

interface Asked {
  log: string;
  asOf: bigint;
  name: ExportName;
  format: Format;
  parameters: Parameters;
}

/** The base64 SHA-256 that `month_closed` has of this file; undefined where it is none of a closed month. */
export async function signedHash(
  tx: Transaction,
  { log, asOf, format, name, parameters }: Asked,
): Promise<string | undefined> {
  const { month, ...others } = parameters;
  const isOfMonth = month !== undefined;
  if (format !== "csv" || Object.keys(others).length > 0) return undefined;
  if (isOfMonth === (name === "account_map")) return undefined;
  // A month's file ends with its cut-off, as of whatever entry it is asked for; a map of accounts has no other end.
  const end = (await readMonthEnds(tx, log)).find((each) => {
    return isOfMonth ? each.month === month && each.closing <= asOf : each.closing === asOf;
  });
  if (end === undefined) return undefined;
  const { body } = decodedAs("month_closed", (await readEntry(tx, log, end.index)).bytes);
  return body.exports.find((file) => file.name === name)?.sha256;
}
