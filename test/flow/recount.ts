/** A naive recount of a ledger: entry by entry, from the bytes, with bigint in plain maps. */
import { decodeEntry } from "../../src/core/entry.ts";
import { readCompact } from "../../src/core/jws.ts";
import type { Report } from "../../src/core/report.ts";
import type { TestLedger } from "../ledger.ts";

/** One row for each usage among entries 0 … size−1. */
export function recountOf(ledger: TestLedger, size: bigint): Record<string, string>[] {
  return ledger.written.slice(0, Number(size)).flatMap(({ bytes }) => {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string" || entry.kind !== "usage") return [];
    const { body } = entry;
    const payload = Buffer.from(readCompact(body.jws)?.payload ?? []).toString("utf8");
    const report: Report = JSON.parse(payload);
    const { runner_id = "" } =
      ledger.prefix.runner(report.runner.uuid, BigInt(body.enrolment), report.usage.finished_at) ??
      {};
    return {
      tracking: body.tracking,
      billing_month: body.billing_month,
      usage_month: body.usage_month,
      namespace: report.job.root_namespace_id,
      project: report.job.project_id,
      runner: runner_id,
      machine_type: body.machine_type,
      jobs: "1",
      duration_ms: report.usage.duration_ms,
      compute_ms: body.compute_ms,
      billable_compute_ms: body.billable ? body.compute_ms : "0.000000",
    };
  });
}

const FIGURES = ["jobs", "duration_ms", "compute_ms", "billable_compute_ms"];

/** Exact sums by the keys, in 10⁻⁶ where the figure has decimals. */
export function sumBy(rows: readonly object[], keys: readonly string[]): Record<string, bigint[]> {
  const sums = new Map<string, bigint[]>();
  for (const row of rows) {
    const key = keys.map((name) => Reflect.get(row, name)).join(" ");
    const sum = sums.get(key) ?? FIGURES.map(() => 0n);
    sums.set(
      key,
      FIGURES.map(
        (name, i) => (sum[i] ?? 0n) + BigInt(String(Reflect.get(row, name)).replace(".", "")),
      ),
    );
  }
  return Object.fromEntries([...sums].sort(([a], [b]) => (a < b ? -1 : 1)));
}
