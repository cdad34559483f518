/** The files of a closed month: `month_closed` says their hashes, and whoever has the log makes them again. */
import { createHash } from "node:crypto";
import type { Body } from "../../core/entry.ts";
import type { TableName } from "../../core/export/tables.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { bePatient } from "../month/patience.ts";
import { snapshot } from "../usage/show.ts";
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

interface OfMonth {
  log: string;
  month: string;
  /** Of the cut-off. */
  closing: bigint;
}

/** As CSV, as of the cut-off: of entries before it alone, so that they are the same for ever. */
export async function closingSet(sql: Sql, of: OfMonth): Promise<Body<"month_closed">["exports"]> {
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
