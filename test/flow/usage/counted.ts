/** What is served of usage, held against a naive recount of the log. */
import { expect } from "vitest";
import { usage } from "../../../src/flow/usage/usage.ts";
import type { TestLedger } from "../../ledger.ts";
import type { FreshDatabase } from "../../postgres.ts";
import { clock } from "../history.ts";
import { recountOf, sumBy } from "../recount.ts";

/** By all keys, sealed and fresh, and each view against sums of the same recount of entries 0 … sealed−1. */
export async function expectEqualToRecount(
  db: FreshDatabase,
  ledger: TestLedger,
  sealed: bigint,
): Promise<void> {
  const group = [
    "tracking",
    "namespace",
    "project",
    "runner",
    "machine_type",
    "usage_month",
  ] as const;
  for (const fresh of [false, true]) {
    const size = fresh ? ledger.size : sealed;
    const answer = await usage({ sql: db.reader, clock }, { log: ledger.log, group, fresh });
    expect(answer.as_of).toBe(String(size));
    expect(sumBy(answer.rows, ["billing_month", ...group])).toEqual(
      sumBy(recountOf(ledger, size), ["billing_month", ...group]),
    );
  }
  for (const [view, keys] of VIEWS) {
    const rows = await db.reader`select * from ${db.reader(view)} where log = ${ledger.log}`;
    const renamed = rows.map((row) => ({
      jobs: String(row["jobs"]),
      duration_ms: row["duration_ms"],
      gross_compute_ms: row["gross_compute_ms"],
      adjustment_compute_ms: row["adjustment_compute_ms"],
      compute_ms: row["net_compute_ms"],
      billable_compute_ms: row["billable_compute_ms"],
      billing_month: row["date"] ?? row["billing_month"],
      namespace: String(row["namespace_id"] ?? row["root_namespace_id"]),
      project: String(row["project_id"]),
      runner: String(row["runner_id"]),
      usage_month: row["usage_month"],
      tracking: row["tracking"],
    }));
    const counted = recountOf(ledger, sealed).filter(
      ({ tracking }) => !view.includes("hosted") || tracking === "hosted",
    );
    expect(sumBy(renamed, keys)).toEqual(sumBy(counted, keys));
  }
}

const MONTHS = ["tracking", "billing_month", "usage_month", "namespace"];
const VIEWS = [
  ["ci_namespace_monthly_usages", MONTHS],
  ["ci_project_monthly_usages", [...MONTHS, "project"]],
  ["ci_gitlab_hosted_runner_monthly_usages", [...MONTHS, "project", "runner"]],
] as const;
