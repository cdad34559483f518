/** A naive recount of a ledger: entry by entry, from the bytes, with bigint in plain maps. */
import { type Body, decodeEntry } from "../../src/core/entry.ts";
import { readCompact } from "../../src/core/jws.ts";
import type { Report } from "../../src/core/report.ts";
import type { TestLedger } from "../ledger.ts";

/** One row for each usage, and for each line of an adjustment, among entries 0 … size−1. */
export function recountOf(ledger: TestLedger, size: bigint): Record<string, string>[] {
  return ledger.written.slice(0, Number(size)).flatMap(({ bytes }) => {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string") return [];
    if (entry.kind === "adjustment") return adjusted(ledger, entry.body);
    if (entry.kind !== "usage") return [];
    const { body } = entry;
    const report = reportIn(body.jws);
    return {
      tracking: body.tracking,
      billing_month: body.billing_month,
      usage_month: body.usage_month,
      namespace: report.job.root_namespace_id,
      project: report.job.project_id,
      runner: runnerOf(ledger, body),
      machine_type: body.machine_type,
      jobs: "1",
      duration_ms: report.usage.duration_ms,
      gross_compute_ms: body.compute_ms,
      adjustment_compute_ms: "0.000000",
      compute_ms: body.compute_ms,
      billable_compute_ms: body.billable ? body.compute_ms : "0.000000",
    };
  });
}

function adjusted(ledger: TestLedger, body: Body<"adjustment">): Record<string, string>[] {
  return body.lines.map(({ amount, entry, namespace_id, project_id, usage_month }) => {
    const about = entry === "" ? undefined : ledger.written[Number(entry)]?.entry;
    if (about !== undefined && about.kind !== "usage") throw new Error("recount: no usage");
    return {
      tracking: "hosted",
      billing_month: body.billing_month,
      usage_month,
      namespace: namespace_id,
      project: project_id || "0",
      runner: about === undefined ? "0" : runnerOf(ledger, about.body),
      machine_type: about?.body.machine_type ?? "",
      jobs: "0",
      duration_ms: "0",
      gross_compute_ms: "0.000000",
      adjustment_compute_ms: amount,
      compute_ms: amount,
      billable_compute_ms: amount,
    };
  });
}

function runnerOf({ prefix }: TestLedger, { enrolment, jws }: Body<"usage">): string {
  const { runner, usage } = reportIn(jws);
  return prefix.runner(runner.uuid, BigInt(enrolment), usage.finished_at)?.runner_id ?? "";
}

function reportIn(jws: string): Report {
  return JSON.parse(Buffer.from(readCompact(jws)?.payload ?? []).toString("utf8"));
}

const FIGURES = [
  "jobs",
  "duration_ms",
  "gross_compute_ms",
  "adjustment_compute_ms",
  "compute_ms",
  "billable_compute_ms",
];

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
