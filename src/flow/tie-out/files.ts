/** Legs of the files that were made of a closed month: each as it lies there, and what its manifest says of it. */
import { createHash } from "node:crypto";
import { formatSignedComputeMs, parseSignedComputeMs } from "../../core/charge.ts";
import { Manifest } from "../../core/export/manifest.ts";
import { TABLES } from "../../core/export/tables.ts";
import { Totals } from "../../core/export/totals.ts";
import { parseCanonical } from "../../core/json.ts";
import { encodeUtf8 } from "../../core/text.ts";
import { readCsv } from "../../format/csv-read.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import type { ExportFiles } from "../../store/export-files.ts";
import { type ExportRow, readExportBy } from "../../store/exports.ts";
import { CLOSING_SET } from "../export/closing-set.ts";
import { keptAt } from "../export/kept.ts";
import { unavailable } from "../export/read.ts";
import { closingOrigin } from "../export/schedule.ts";
import { FIGURES, type Figure, type Figures, type Leg } from "./leg.ts";

type FileName = (typeof CLOSING_SET)[number];

/** Asked for by the service itself; undefined: not yet. */
export type AskedFile = readonly [name: FileName, row: ExportRow | undefined];

export async function askedFiles(
  sql: Sql | Transaction,
  { log, month }: { log: string; month: string },
): Promise<AskedFile[]> {
  const asked: AskedFile[] = [];
  for (const name of CLOSING_SET) {
    asked.push([name, await readExportBy(sql, log, closingOrigin(name) + month)]);
  }
  return asked;
}

/**
 * Of what is made; of what is not made yet there is nothing to say.
 *
 * @param signed what `month_closed` says
 * @throws Problem `exports-unavailable`
 */
export async function fileLegs(
  files: ExportFiles,
  [name, row]: AskedFile,
  signed: Figures,
): Promise<Leg[]> {
  if (row === undefined || row.state === "pending") return [];
  const leg = `exports/${name}`;
  if (row.error !== null) return [{ leg, figures: { [`${name}.sha256`]: `failed: ${row.error}` } }];
  return [
    { leg: `manifests/${name}`, figures: saidBy(name, row) },
    { leg, figures: await readBack(files, name, { row, signed }).catch(unavailable) },
  ];
}

function saidBy(name: FileName, { manifest }: ExportRow): Figures {
  const said = Manifest.safeParse(parseCanonical(encodeUtf8(manifest ?? ""))).data;
  return said === undefined ? { [`${name}.sha256`]: "unreadable" } : figuresOf(name, said);
}

async function readBack(
  files: ExportFiles,
  name: FileName,
  { row, signed }: { row: ExportRow; signed: Figures },
): Promise<Figures> {
  const path = keptAt(row);
  const to = await files.size(path);
  if (to === undefined) return { [`${name}.sha256`]: "missing" };
  const digest = createHash("sha256");
  for await (const chunk of files.read(path, { from: 0, to })) digest.update(chunk);
  const sha256 = digest.digest("base64");
  // Of other bytes than those that were signed nothing counts that they say, if they can be read at all.
  if (sha256 !== signed[`${name}.sha256`]) return { [`${name}.sha256`]: sha256 };
  const counted = new Totals(TABLES[name]);
  for await (const line of readCsv(files.read(path, { from: 0, to }))) counted.add([line]);
  const { rows, totals } = counted.figures;
  return figuresOf(name, { rows: String(rows), sha256, totals });
}

/** Columns that are figures under another name; what has no name here is one, or none, by its own. */
const MEANINGS: Partial<Record<FileName, Readonly<Record<string, Figure>>>> = {
  allocation: { drawn_compute_ms: "pack_compute_ms", usage_compute_ms: "net_compute_ms" },
  monthly_hosted_runner: {
    duration_ms: "hosted_duration_ms",
    gross_compute_ms: "hosted_gross_compute_ms",
    jobs: "hosted_jobs",
    net_compute_ms: "hosted_net_compute_ms",
  },
  pack_rollforward: {
    bought_compute_ms: "packs_bought_compute_ms",
    closing_compute_ms: "packs_closing_compute_ms",
    drawn_compute_ms: "packs_drawn_compute_ms",
    expired_compute_ms: "packs_expired_compute_ms",
    opening_compute_ms: "packs_opening_compute_ms",
    refunded_compute_ms: "packs_refunded_compute_ms",
  },
};

function figuresOf(
  name: FileName,
  { rows, sha256, totals }: Pick<Manifest, "rows" | "sha256" | "totals">,
): Figures {
  const figures: Figures = { [`${name}.rows`]: rows, [`${name}.sha256`]: sha256 };
  const known: ReadonlySet<string> = new Set(FIGURES);
  for (const [column, total] of Object.entries(totals)) {
    const figure = MEANINGS[name]?.[column] ?? column;
    if (known.has(figure)) figures[figure as Figure] = total;
  }
  // What the portal is told as gross is before discounts.
  const { discount_compute_ms, gross_compute_ms } = totals;
  if (discount_compute_ms !== undefined && gross_compute_ms !== undefined) {
    const charged =
      parseSignedComputeMs(gross_compute_ms) - parseSignedComputeMs(discount_compute_ms);
    figures.gross_compute_ms = formatSignedComputeMs(charged);
  }
  return figures;
}
