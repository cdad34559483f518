/**
 * A FOCUS file, held to the log and to the price list that it was made with: every row is made again, and
 * compared cell by cell in its place. Without the list what it alone says is not looked at.
 */
import type { Manifest } from "../../../src/core/export/manifest.ts";
import type { Column, Row } from "../../../src/core/export/tables.ts";
import { CannotLook, type Findings } from "../../finding.ts";
import type { Book } from "../book.ts";
import type { ExportFile } from "../export-file.ts";
import { Totals } from "../totals.ts";
import { OTHER_COLUMNS, THE_LOG_IS_SILENT, type Unchecked } from "../unchecked.ts";
import { Unreadable } from "../unreadable.ts";
import { focusColumns, PRICED } from "./columns.ts";
import { compareInPlace } from "./compare.ts";
import type { Priced } from "./price-list.ts";
import { faultsIn, isDecimal } from "./row.ts";
import { focusRows } from "./rows.ts";
import { Unmade } from "./unmade.ts";

/** Of what a row tells who is charged for what; no two are the same in them. */
const ABOUT = [
  ...["BillingAccountId", "x_SubscriptionId", "x_NamespaceId", "x_UsageMonth", "ChargePeriodStart"],
  ...[
    "ChargePeriodEnd",
    "x_ProjectId",
    "SkuId",
    "x_Tracking",
    "ChargeClass",
    "x_Portion",
    "x_Pack",
  ],
];
/** Of the directory of names, where they were asked for. */
const NAMES = ["ResourceName", "SubAccountName"];
const NO_PRICE_LIST = "no price list was given (--price-list)";

interface FocusChecking {
  file: ExportFile;
  manifest: Manifest;
  /** That of the manifest, if it was given. */
  priced: Priced | undefined;
}

/** @throws CannotLook for a version of the specification that is not known here */
export async function checkFocus(
  book: Book,
  { file, manifest, priced }: FocusChecking,
  findings: Findings,
): Promise<Unchecked[]> {
  const { focus_version: version = "", month = "", names, prices_sha256 } = manifest.parameters;
  const withMoney = prices_sha256 !== undefined;
  const known = focusColumns(version, withMoney);
  if (known === undefined) throw new CannotLook(`FOCUS ${version} is not known here`);
  const columns = inFile(manifest, known);
  if (columns === undefined) {
    const detail = `FOCUS ${version} has other columns: ${manifest.columns.join(", ")}`;
    findings.add("export-manifest", {}, detail);
    return [{ columns: manifest.columns, why: OTHER_COLUMNS }];
  }
  const unpriced = columns.flatMap(({ name }) => {
    return priced === undefined && PRICED.has(name) ? [name] : [];
  });
  const silent = names ? NAMES : [];
  const { unique_id: instance } = manifest.instance;
  const about = { columns: manifest.columns, month, instance, withMoney, priced };
  const comparing = { columns, order: ABOUT, beside: new Set([...unpriced, ...silent]) };
  const totals = new Totals(columns);
  const onFault = (detail: string): void => findings.add("export-row", { path: file.name }, detail);
  const said = saidRows(file, { manifest, columns, totals, checks: unpriced.length > 0, onFault });
  try {
    for await (const { detail, row } of compareInPlace(said, focusRows(book, about), comparing)) {
      onFault(`row ${row}: ${detail}`);
    }
    totals.check(manifest, findings);
  } catch (error) {
    if (error instanceof Unmade) onFault(`no such file can be made: ${error.message}`);
    else if (error instanceof Unreadable)
      findings.add("export-file", { path: file.name }, error.message);
    else throw error;
  }
  return [
    { columns: silent, why: THE_LOG_IS_SILENT },
    { columns: unpriced, why: NO_PRICE_LIST },
  ].filter((unchecked) => unchecked.columns.length > 0);
}

/** In the order of the manifest; undefined where it names others. */
function inFile({ columns }: Manifest, known: readonly Column[]): Column[] | undefined {
  const found = columns.flatMap((name) => known.filter((column) => column.name === name));
  const each = new Set(found).size === known.length;
  return each && columns.length === known.length ? found : undefined;
}

interface Saying {
  manifest: Manifest;
  columns: readonly Column[];
  totals: Totals;
  /** Whether costs are held to the prices beside them: where there is nothing else to hold them to. */
  checks: boolean;
  onFault(detail: string): void;
}

/** As CSV writes them, counted and summed as they go by. */
async function* saidRows(
  file: ExportFile,
  { checks, columns, manifest, onFault, totals }: Saying,
): AsyncGenerator<Row> {
  let number = 0n;
  const places = new Map(columns.map(({ name }, at) => [name, at]));
  for await (const read of file.rows(manifest.format, columns)) {
    number += 1n;
    const row = columns.map(({ type }, at) => {
      const cell = read[at] ?? null;
      // Parquet has milliseconds where the specification's text has none.
      return manifest.format === "parquet" && type === "instant" ? wholeSeconds(cell) : cell;
    });
    // What is no number is a finding where it stands, and nothing in the sum.
    totals.add(
      columns.map(({ summed }, at) => {
        const cell = row[at] ?? "";
        return summed && isDecimal(cell) ? cell : null;
      }),
    );
    const faults = checks ? faultsIn((name) => row[places.get(name) ?? -1] ?? "") : [];
    for (const fault of faults) onFault(`row ${number}: ${fault}`);
    yield row;
  }
}

function wholeSeconds(cell: string | null): string | null {
  return cell?.replace(/\.000Z$/, "Z") ?? null;
}
