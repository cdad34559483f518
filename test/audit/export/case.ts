/** A log with something of everything that files tell, and files of it as an honest service signs them. */
import { createHash } from "node:crypto";
import type { Entry } from "../../../src/core/entry.ts";
import {
  encodeManifest,
  exportText,
  type Manifest,
  type Parameters,
} from "../../../src/core/export/manifest.ts";
import {
  type Column,
  type ExportName,
  type Format,
  type Row,
  TABLES,
  type TableName,
} from "../../../src/core/export/tables.ts";
import { Totals } from "../../../src/core/export/totals.ts";
import { sha256 } from "../../../src/core/hash.ts";
import { signNote } from "../../../src/core/note.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { EMPTY_EDGE, edgeRoot, grow } from "../../../src/core/tile.ts";
import { writeCsv } from "../../../src/format/csv.ts";
import { writeNdjson } from "../../../src/format/ndjson.ts";
import { writeParquet } from "../../../src/format/parquet.ts";
import { signer } from "../archive.ts";
import { account, close, countedAs, coverage, decoded, ready } from "../closing.ts";
import { card, limit, line, pack, SALT, TestLog } from "../log.ts";
import { entryRowsOf, filesOfMonth } from "./honest.ts";

export const CLOSED = "2026-11-01";
export const OPEN = "2026-12-01";
/** What a spreadsheet would run, and what a separator, a quote and a script beyond the first plane do to a cell. */
const MACHINES = ['=HYPERLINK("x", "y")', "𝔩arge,\u202eبناء", "'quoted"] as const;

export function richLog(): TestLog {
  const log = new TestLog();
  log.write("rate_card", card());
  log.write("rate_card", card({ tracking: "self_managed" }));
  log.write("project_class", {
    ...{ approval: "", by: "finance", class: "oss", salt: SALT, source: "s" },
    ...{ effective_from: "2026-01-01T00:00:00.000Z", project_id: "11" },
  });
  log.write("account", account());
  log.write("account", account({ account_id: "=A-2", namespace_id: "2", subscription_id: "" }));
  log.write(
    "account",
    account({ account_id: "A-10", namespace_id: "10", subscription_id: "S, 10" }),
  );
  log.write("quota", { ...limit("1", "3"), beyond: "bill" });
  log.write("quota", limit("2", "1"));
  log.write("pack", { ...pack("1"), minutes: "2", expires_in: OPEN });
  const machines = MACHINES.map((machine_type, at) => {
    return line(`runner-${at}`, { machine_type, runner_id: "8" });
  });
  const agent = log.enrol(2, [line("runner-a"), ...machines]);
  const own = log.enrol(3, [line("runner-own", { tracking: "self_managed", runner_id: "9" })]);
  const built = [
    log.submit(agent, { duration: "90000", finished: "2026-11-03T23:59:59.999Z" }),
    log.submit(agent, { duration: "200001", project: "11", uuid: "runner-0" }),
    log.submit(agent, {
      duration: "33333",
      uuid: "runner-1",
      finished: "2026-11-04T00:00:00.000Z",
    }),
  ];
  log.submit(agent, { duration: "70000", namespace: "2", uuid: "runner-2" });
  log.submit(agent, { duration: "50000", reason: "runner_system_failure" });
  log.submit(own, { duration: "123456", uuid: "runner-own", namespace: "10" });
  const adjust = (
    billing_month: string,
    lines: { amount: string; entry: string; project_id: string }[],
  ) =>
    log.write("adjustment", {
      ...{ approval: "", by: "finance", salt: SALT, reason: "incident", ticket: "T" },
      ...{ billing_month, credit_run: "", first_line: "0" },
      lines: lines.map((said) => {
        return { ...said, namespace_id: "1", reverses: "", usage_month: CLOSED };
      }),
    });
  adjust(CLOSED, [
    { amount: "-1000.500000", entry: built[0] ?? "", project_id: "10" },
    { amount: "-33333.000000", entry: built[2] ?? "", project_id: "10" },
    { amount: "-7.000001", entry: "", project_id: "" },
    { amount: "5.250000", entry: "", project_id: "11" },
  ]);
  ready(log, CLOSED, [agent]);
  log.write("coverage", coverage(CLOSED, "8"));
  close(log, CLOSED);
  log.at = "2026-12-06T00:00:00.000Z";
  log.submit(agent, { duration: "60001", finished: "2026-11-30T10:00:00.000Z" });
  log.submit(agent, { duration: "600000", uuid: "runner-1" });
  adjust(OPEN, [{ amount: "-100000.000000", entry: built[1] ?? "", project_id: "11" }]);
  log.submit(agent, { duration: "90000", namespace: "2" });
  return log;
}

/** As of these many entries. */
export function honestRows(log: TestLog, asOf: number, name: TableName, month?: string): Row[] {
  const bytes = log.entries.slice(0, asOf);
  const entries = bytes.map(decoded);
  if (name === "entries") return entryRowsOf(bytes, entries);
  if (name === "account_map") return filesOfMonth(entries, "", []).account_map;
  const months = month === undefined ? [CLOSED, OPEN] : [month];
  return months.flatMap((each) => {
    const below = cutOff(entries, each);
    const { owed } = countedAs(below, { index: BigInt(below.length), month: each });
    return filesOfMonth(below, each, owed)[name];
  });
}

function cutOff(entries: readonly Entry[], month: string): readonly Entry[] {
  const at = entries.findIndex(
    ({ body, kind }) => kind === "month_closing" && body.month === month,
  );
  return at < 0 ? entries : entries.slice(0, at);
}

export interface Exported {
  file: Uint8Array;
  manifest: Manifest;
  json: string;
  note: string;
}

export interface Asked {
  name: TableName;
  format?: Format;
  parameters?: Parameters;
  asOf?: number;
  columns?: readonly Column[];
  rows?: readonly Row[];
}

export const WRITE = { csv: writeCsv, ndjson: writeNdjson, parquet: writeParquet };

export async function exported(log: TestLog, asked: Asked): Promise<Exported> {
  const { asOf = log.size, format = "csv", name, parameters = {} } = asked;
  const columns = asked.columns ?? TABLES[name];
  const from = Number(parameters.from ?? 0);
  const all = asked.rows ?? honestRows(log, asOf, name, parameters.month);
  const rows = name === "entries" ? all.filter(([index]) => Number(index) >= from) : all;
  const pages = async function* () {
    yield rows;
  };
  const chunks: Uint8Array[] = [];
  for await (const chunk of WRITE[format](columns, pages())) chunks.push(chunk);
  const totals = new Totals(columns);
  totals.add(rows);
  const file = Buffer.concat(chunks);
  return signed(log, file, {
    ...{ as_of: String(asOf), columns: columns.map((column) => column.name), format, parameters },
    ...{ name, rows: String(rows.length), totals: totals.figures.totals },
    range: { from: String(from), to: String(asOf) },
  });
}

type Said = Omit<
  Manifest,
  "bytes" | "checkpoint" | "created_at" | "generator" | "instance" | "log" | "name" | "sha256" | "v"
> & { name: ExportName };

/** Under the log's key, whatever it says. */
export function signed(log: TestLog, file: Uint8Array, said: Said & Partial<Manifest>): Exported {
  const { edge } = grow(EMPTY_EDGE, log.leaves, sha256);
  const manifest: Manifest = {
    bytes: String(file.length),
    checkpoint: { root: encodeBase64(edgeRoot(edge, sha256)), size: String(log.size) },
    created_at: log.at,
    generator: "minutebook 0.1.0",
    instance: { platform: "dotcom", unique_id: "instance" },
    log: log.id,
    sha256: createHash("sha256").update(file).digest("base64"),
    v: "1",
    ...said,
  };
  const json = encodeManifest(manifest);
  const text = exportText(`test/${log.id}`, manifest.name, json);
  return { file, manifest, json, note: signNote(text, [signer(log.id)]) };
}
