/**
 * A file for finance, held to its manifest, and both to the log. It reads like its argument: whose word the
 * manifest is, whether this is the file, whether the log is the one, and then row by row.
 */
import type { EntryOf } from "../../src/core/entry.ts";
import type { Manifest } from "../../src/core/export/manifest.ts";
import { type Column, ORDER, type Row, type TableName } from "../../src/core/export/tables.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { decodeBase64, equal } from "../../src/core/text.ts";
import { type NewestOptions, newest } from "../fetch/newest.ts";
import { Proven } from "../fetch/proven.ts";
import { CannotLook, endedBy, Findings } from "../finding.ts";
import type { Source } from "../source.ts";
import { compareRows } from "./compare.ts";
import { creditsOf } from "./credits.ts";
import type { ExportFile } from "./export-file.ts";
import { checkFocus } from "./focus/check.ts";
import { openPriceList, type Priced } from "./focus/price-list.ts";
import { bookOf, givenRows } from "./given.ts";
import { BESIDE_THE_LOG, CREDITS, columnsOf, misfitsIn, openManifest } from "./manifest.ts";
import { Totals } from "./totals.ts";
import { OTHER_COLUMNS, OTHER_PARAMETERS, THE_LOG_IS_SILENT, type Unchecked } from "./unchecked.ts";
import { Unreadable } from "./unreadable.ts";

export interface CheckOptions extends NewestOptions {
  log: string;
  file: ExportFile;
  manifest: Uint8Array;
  note: Uint8Array;
  /** Of a file with money in it: the list that its manifest names. */
  priceList?: Uint8Array;
  hash: Sha256;
  onProgress?(done: bigint, bundles: bigint): void;
}

export interface CheckedExport {
  /** Undefined where it is nobody's word. */
  manifest: Manifest | undefined;
  unchecked: Unchecked[];
  findings: Findings;
  /** Why it ended before all was looked at, where it did: then only the findings say anything. */
  missed?: string;
}

/** @throws NotProven for what the log is at fault for; CannotLook for what cannot be judged here */
export async function checkExport(source: Source, options: CheckOptions): Promise<CheckedExport> {
  const { log } = options;
  const findings = new Findings();
  const manifest = openManifest({ json: options.manifest, note: options.note }, options);
  if (typeof manifest === "string") {
    findings.add("export-manifest", {}, manifest);
    return { manifest: undefined, unchecked: [], findings };
  }
  if (manifest.log !== log) throw new CannotLook(`the manifest is of log ${manifest.log}`);
  const { hash, priceList } = options;
  const priced = priceList && openPriceList(priceList, manifest, hash);
  const isWhole = await compareBytes(options.file, manifest, findings);
  // A reader of Parquet gives memory to what the file says of itself: none but the signed one is given any.
  const file = isWhole || manifest.format !== "parquet" ? options.file : unread(options.file);
  try {
    const proven = await openLog(source, manifest, options, findings);
    const unchecked = await compareContent(
      proven,
      { ...options, file, manifest, priced },
      findings,
    );
    return { manifest, unchecked, findings };
  } catch (error) {
    return { manifest, unchecked: [], findings, missed: endedBy(error, findings) };
  }
}

/** Whether it is the file of the manifest. */
async function compareBytes(
  file: ExportFile,
  manifest: Manifest,
  findings: Findings,
): Promise<boolean> {
  const { bytes, sha256 } = await file.digest();
  if (String(bytes) === manifest.bytes && sha256 === manifest.sha256) return true;
  const detail = `${bytes} bytes of SHA-256 ${sha256}, not ${manifest.bytes} of ${manifest.sha256}`;
  findings.add("export-file", { path: file.name }, detail);
  return false;
}

function unread(file: ExportFile): ExportFile {
  const rows = (): never => {
    throw new Unreadable(
      "no row of it was looked at: it is Parquet, and not the file of the manifest",
    );
  };
  return { ...file, rows };
}

/** Under the newest checkpoint, of which the manifest's must be an earlier state. */
async function openLog(
  source: Source,
  { as_of, checkpoint, range, parameters }: Manifest,
  options: CheckOptions,
  findings: Findings,
): Promise<Proven> {
  const top = await newest(source, options);
  const size = BigInt(checkpoint.size);
  if (top === undefined) throw new CannotLook("there is no checkpoint");
  if (size > top.size || BigInt(as_of) > top.size) {
    throw new CannotLook(`as of ${as_of} under ${size}, and ${top.size} entries are here`);
  }
  const proven = await Proven.open({ ...options, sources: [source], checkpoint: top });
  const root = decodeBase64(checkpoint.root);
  if (root === undefined || size === 0n || !equal(root, await proven.root(size))) {
    findings.add("export-root", {}, `size ${size}, and a root that is not the tree's`);
  }
  const covered = BigInt(as_of) <= size;
  const whole = range.from === (parameters.from ?? "0") && range.to === as_of;
  if (!covered || !whole) {
    const detail = `as of ${as_of}, entries ${range.from} to ${range.to}, under ${size}`;
    findings.add("export-root", {}, detail);
  }
  return proven;
}

interface Comparing extends Omit<CheckOptions, "manifest"> {
  manifest: Manifest;
  priced: Priced | undefined;
}

async function compareContent(
  proven: Proven,
  comparing: Comparing,
  findings: Findings,
): Promise<Unchecked[]> {
  const { manifest } = comparing;
  const onLog = ({ body }: EntryOf<"log">): void => {
    const { platform, unique_id } = manifest.instance;
    if (platform === body.platform && unique_id === body.unique_id) return;
    findings.add("export-root", {}, `of ${unique_id} (${platform}), and the log is another's`);
  };
  const giving = { ...comparing, onLog };
  const { name } = manifest;
  const misfits = misfitsIn(manifest);
  if (misfits.length > 0) {
    const detail = `${name} with what it does not have, or without what it needs: ${misfits.join(", ")}`;
    findings.add("export-manifest", {}, detail);
    return [{ columns: manifest.columns, why: OTHER_PARAMETERS }];
  }
  if (name === "focus") {
    return await checkFocus(await bookOf(proven, giving), comparing, findings);
  }
  const columns = columnsOf(manifest);
  if (columns === undefined) {
    findings.add(
      "export-manifest",
      {},
      `${name} has other columns: ${manifest.columns.join(", ")}`,
    );
    return [{ columns: manifest.columns, why: OTHER_COLUMNS }];
  }
  const totals = new Totals(columns);
  const given = counted(givenRows(proven, { ...giving, name }), { columns, manifest, totals });
  await compareTable(given, { ...comparing, name, columns }, findings);
  totals.check(manifest, findings);
  const silent = manifest.columns.filter((column) => BESIDE_THE_LOG.has(column));
  return silent.length === 0 ? [] : [{ columns: silent, why: THE_LOG_IS_SILENT }];
}

interface Table extends Comparing {
  name: TableName;
  columns: readonly Column[];
}

async function compareTable(
  given: AsyncIterable<Row>,
  { columns, file, manifest, name }: Table,
  findings: Findings,
): Promise<void> {
  const order = { columns, order: ORDER[name], beside: BESIDE_THE_LOG };
  try {
    const rows = file.rows(manifest.format, columns);
    for await (const { detail, row } of compareRows(rows, given, order)) {
      findings.add("export-row", { path: file.name }, `row ${row}: ${detail}`);
    }
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    findings.add("export-file", { path: file.name }, error.message);
    // What the manifest counts and sums is held to the log all the same.
    for await (const _ of given);
  }
}

/** With what is derived of them, and as they go by. */
async function* counted(
  rows: AsyncIterable<Row>,
  { columns, manifest, totals }: { columns: readonly Column[]; manifest: Manifest; totals: Totals },
): AsyncGenerator<Row> {
  const minutes = BigInt(manifest.parameters.credit_minutes ?? 0);
  const billable = columns.findIndex(({ name }) => name === "billable_compute_ms");
  for await (const row of rows) {
    totals.add(row);
    const more = columns.slice(row.length).map((column) => {
      return column === CREDITS ? creditsOf(row[billable] ?? "", minutes) : null;
    });
    yield more.length === 0 ? row : [...row, ...more];
  }
}
