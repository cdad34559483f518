/**
 * `npm run bench [-- ROW… --quick --json FILE]`: the rows of docs/performance.md, each with what it is
 * held against measured in the same run. Status 1 when a ratio is not held; a quick run judges nothing.
 */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { append } from "./append.ts";
import { audit } from "./audit.ts";
import { exports } from "./export.ts";
import { type Context, openHistories } from "./history.ts";
import { logs } from "./logs.ts";
import { holds, type Row, ratioOf, table } from "./measure.ts";
import { decision, decisions, heartbeats } from "./quota.ts";
import { refresh } from "./refresh.ts";
import { batches, namespace, single } from "./reports.ts";
import { seal } from "./seal.ts";
import { openService } from "./service.ts";
import { FULL, QUICK, type Run, type Sizes } from "./sizes.ts";

type Bench = (context: Context) => Promise<Row>;

/** Reports are measured before anything asks for quota; the audit comes before what lets its log grow. */
const ROWS: Readonly<Record<string, Bench>> = {
  batches,
  single,
  namespace,
  decisions,
  decision,
  heartbeats,
  append,
  audit,
  refresh,
  seal,
  logs,
  export: exports,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: "string" },
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    large: { type: "string" },
    small: { type: "string" },
    exported: { type: "string" },
    folder: { type: "string", default: tmpdir() },
  },
});

const unknown = positionals.filter((name) => !Object.hasOwn(ROWS, name));
if (unknown.length > 0) {
  process.stderr.write(`no row ${unknown.join(", ")}; there are ${Object.keys(ROWS).join(", ")}\n`);
  process.exitCode = 2;
} else {
  const named = Object.entries(ROWS).filter(
    ([name]) => positionals.length === 0 || positionals.includes(name),
  );
  const rows = await measured(named);
  if (values.quick) process.stdout.write("A quick run: too short to judge by.\n\n");
  process.stdout.write(`${table(rows, !values.quick)}\n`);
  if (values.json !== undefined) await writeFile(values.json, `${document(rows)}\n`);
  if (!values.quick && !rows.every(holds)) process.exitCode = 1;
}

async function measured(named: [string, Bench][]): Promise<Row[]> {
  const folder = await mkdtemp(join(values.folder, "minutebook-bench-"));
  const closing = [() => rm(folder, { recursive: true, force: true })];
  const run: Run = {
    sizes: sizes(),
    folder,
    say: (text) => process.stderr.write(`  ${text}\n`),
    defer: (close) => closing.unshift(close),
  };
  const context = { ...run, histories: openHistories(run), service: openService(run) };
  const rows: Row[] = [];
  try {
    for (const [name, bench] of named) {
      process.stderr.write(`${name}\n`);
      rows.push(await bench(context));
    }
    return rows;
  } finally {
    for (const close of closing) await close();
  }
}

function sizes(): Sizes {
  const { exported, rounds, large, small } = values;
  return {
    ...(values.quick ? QUICK : FULL),
    ...(rounds !== undefined && { rounds: Number(rounds) }),
    ...(large !== undefined && { large: Number(large) }),
    ...(small !== undefined && { small: Number(small) }),
    ...(exported !== undefined && { exported: Number(exported) }),
  };
}

/** The machine beside the figures: without it they say nothing. */
function document(rows: readonly Row[]): string {
  const [{ model } = { model: "" }] = cpus();
  return JSON.stringify(
    {
      at: new Date().toISOString(),
      quick: values.quick,
      node: process.version,
      cpus: cpus().length,
      cpu: model,
      sizes: sizes(),
      rows: rows.map((row) => ({ ...row, ratio: ratioOf(row), holds: holds(row) })),
    },
    undefined,
    2,
  );
}
