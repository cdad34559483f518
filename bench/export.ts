/** A file of every entry, made as the service makes it, against PostgreSQL's bare COPY of the same rows. */
import { spawn } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "../src/store/connect.ts";
import type { Outcome, Task } from "./exporting.ts";
import { type Context, HISTORY_NAMESPACES } from "./history.ts";
import { fill, type Ledger, openLedger } from "./ledger.ts";
import { alternate, type Row } from "./measure.ts";

const PROGRAM = new URL("exporting.js", import.meta.url).pathname;
const MEMORY_MIB_MAX = 256;
/** Of the shortest month. */
const MONTH_SECONDS = 28 * 86_400;
const ENTRIES = { name: "entries", format: "csv" } as const;
/** Made once each, for the memory that they take. */
const OTHERS = [
  { name: "entries", format: "ndjson" },
  { name: "entries", format: "parquet" },
  { name: "monthly_namespace", format: "csv" },
  { name: "monthly_project", format: "csv" },
  { name: "monthly_hosted_runner", format: "csv" },
  { name: "portal", format: "csv" },
  { name: "allocation", format: "csv" },
  { name: "pack_rollforward", format: "csv" },
  { name: "account_map", format: "csv" },
  { name: "focus", format: "csv" },
] as const;

export async function exports({ folder, sizes, say, defer }: Context): Promise<Row> {
  const { exported, rounds } = sizes;
  const ledger = await openLedger(join(folder, "export"));
  defer(ledger.close);
  await fill(ledger, 1, HISTORY_NAMESPACES, say);
  await ledger.seal();
  const { asOf, month } = await grown(ledger, exported);
  const files = join(folder, "exports");
  await mkdir(files);
  const task = { url: ledger.urls.writer, log: ledger.log, asOf: String(asOf), folder: files };
  let peak = 0;
  const rows = Number(asOf);
  const figures = await alternate({
    a: async () => {
      const made = await run({ ...task, work: { ...ENTRIES, month } });
      peak = Math.max(peak, made.peak);
      return rows / made.seconds;
    },
    b: async () => rows / (await run({ ...task, work: "copy" })).seconds,
    rounds,
    say,
  });
  const peaks: Record<string, number> = { "peak memory": peak };
  for (const other of OTHERS) {
    const { bytes, peak, seconds } = await run({ ...task, work: { ...other, month } });
    say(`${other.name} as ${other.format}: ${bytes} bytes in ${seconds.toFixed(1)} s`);
    peaks[`${other.name}.${other.format}`] = peak;
  }
  return {
    row: `CSV export of ${exported} entries: made, hashed, counted, on disk`,
    against: "`COPY … TO STDOUT` of the same rows",
    bound: { kind: "at-least", ratio: 0.4 },
    memory: { peaks, most: MEMORY_MIB_MAX },
    unit: "rows/s",
    ...figures,
  };
}

/** As the one build of the log, written by the database: what is measured reads columns, and proves nothing. */
async function grown(
  { log, urls }: Ledger,
  entries: number,
): Promise<{ asOf: bigint; month: string }> {
  const owner = connect(urls.superuser, { max: 1, name: "bench", limits: { statement: 0 } });
  await owner`
    insert into entries (
      log, index, kind, at, prev, leaf, bytes, tracking, job_id, project_id, namespace_id,
      runner_uuid, runner_id, machine_type, duration_ms, compute_ms, not_billable, usage_month,
      billing_month, finished_at
    )
    select
      log, index + n, kind, at + n * interval '1 ms', prev, sha256(n::text::bytea), bytes, tracking,
      job_id + n, project_id + n % ${HISTORY_NAMESPACES}, namespace_id + n % ${HISTORY_NAMESPACES},
      runner_uuid, runner_id, machine_type, duration_ms + n, compute_ms + n / 3.0, not_billable,
      usage_month, billing_month,
      (usage_month::timestamp at time zone 'UTC') + n % ${MONTH_SECONDS} * interval '1 s'
    from entries
    cross join generate_series(1, ${entries}::bigint) as n
    where log = ${log} and kind = 'usage'`;
  await owner`vacuum analyze`;
  await owner`checkpoint`;
  const [row] = await owner<{ size: bigint; month: string }[]>`
    select max(index) + 1 as size, max(billing_month) as month from entries where log = ${log}`;
  await owner.end();
  if (row === undefined) throw new Error("bench: nothing was written");
  return { asOf: row.size, month: row.month };
}

async function run(task: Task): Promise<Outcome> {
  const child = spawn(process.execPath, [PROGRAM, JSON.stringify(task)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  for await (const chunk of child.stdout) said += chunk;
  return JSON.parse(said);
}
