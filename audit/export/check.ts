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
import { digestOf, READ } from "./file/rows.ts";
import { Unreadable } from "./file/unreadable.ts";
import { givenRows } from "./given.ts";
import { BESIDE_THE_LOG, CREDITS, columnsOf, openManifest } from "./manifest.ts";

import { Totals } from "./totals.ts";

export interface CheckOptions extends NewestOptions {
  log: string;
  /** The file's path. */
  file: string;
  manifest: Uint8Array;
  note: Uint8Array;
  hash: Sha256;
  onProgress?(done: bigint, bundles: bigint): void;
}

export interface CheckedExport {
  /** Undefined where it is nobody's word. */
  manifest: Manifest | undefined;
  /** Columns that the log does not give. */
  unchecked: string[];
  findings: Findings;
  /** Why it ended before all was looked at, where it did: then only the findings say anything. */
  missed?: string;
}

/** @throws NotProven for what the log is at fault for; CannotLook for what cannot be judged here */
export async function checkExport(source: Source, options: CheckOptions): Promise<CheckedExport> {
  const { file, log } = options;
  const findings = new Findings();
  const manifest = openManifest({ json: options.manifest, note: options.note }, options);
  if (typeof manifest === "string") {
    findings.add("export-manifest", {}, manifest);
    return { manifest: undefined, unchecked: [], findings };
  }
  if (manifest.log !== log) throw new CannotLook(`the manifest is of log ${manifest.log}`);
  const { name } = manifest;
  if (name === "focus") throw new CannotLook("FOCUS files are not made again by this version");
  await compareBytes(file, manifest, findings);
  const columns = columnsOf(manifest);
  if (columns === undefined) {
    findings.add(
      "export-manifest",
      {},
      `${name} has other columns: ${manifest.columns.join(", ")}`,
    );
    return { manifest, unchecked: [], findings };
  }
  const unchecked = manifest.columns.filter((column) => BESIDE_THE_LOG.has(column));
  try {
    const proven = await openLog(source, manifest, options, findings);
    await compareContent(proven, { ...options, manifest, name, columns }, findings);
    return { manifest, unchecked, findings };
  } catch (error) {
    return { manifest, unchecked, findings, missed: endedBy(error, findings) };
  }
}

async function compareBytes(file: string, manifest: Manifest, findings: Findings): Promise<void> {
  const { bytes, sha256 } = await digestOf(file);
  if (String(bytes) === manifest.bytes && sha256 === manifest.sha256) return;
  const detail = `${bytes} bytes of SHA-256 ${sha256}, not ${manifest.bytes} of ${manifest.sha256}`;
  findings.add("export-file", { path: file }, detail);
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
  name: TableName;
  columns: readonly Column[];
}

async function compareContent(
  proven: Proven,
  comparing: Comparing,
  findings: Findings,
): Promise<void> {
  const { columns, file, manifest, name } = comparing;
  const totals = new Totals(columns);
  const onLog = ({ body }: EntryOf<"log">): void => {
    const { platform, unique_id } = manifest.instance;
    if (platform === body.platform && unique_id === body.unique_id) return;
    findings.add("export-root", {}, `of ${unique_id} (${platform}), and the log is another's`);
  };
  const given = counted(givenRows(proven, { ...comparing, onLog }), comparing, totals);
  const order = { columns, order: ORDER[name], beside: BESIDE_THE_LOG };
  try {
    for await (const { detail, row } of compareRows(
      READ[manifest.format](file, columns),
      given,
      order,
    )) {
      findings.add("export-row", { path: file }, `row ${row}: ${detail}`);
    }
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    findings.add("export-file", { path: file }, error.message);
    // What the manifest says is held to the log all the same.
    for await (const _ of given);
  }
  totals.check(manifest, findings);
}

/** With what is derived of them, and as they go by. */
async function* counted(
  rows: AsyncIterable<Row>,
  { columns, manifest }: Comparing,
  totals: Totals,
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
