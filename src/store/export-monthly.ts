/** What the public views show, counted from entries, so that it is as of any index. */
import { type Page, TABLES, type TableName } from "../core/export/tables.ts";
import { charges } from "./charges.ts";
import type { Transaction } from "./connect.ts";
import { cellPages, cellsOf } from "./export-cells.ts";
import { countOf, SHOWN, type Shown } from "./recounts.ts";

export type MonthlyName = Extract<TableName, `monthly_${string}`>;

/** The view that each is of, and its order. */
const VIEWS: Readonly<Record<MonthlyName, { shown: Shown; order: string }>> = {
  monthly_namespace: {
    shown: "namespace_monthly_usages",
    order: `row.date, row.tracking collate "C", row.namespace_id, row.usage_month`,
  },
  monthly_project: {
    shown: "project_monthly_usages",
    order: `row.date, row.tracking collate "C", row.namespace_id, row.project_id, row.usage_month`,
  },
  monthly_hosted_runner: {
    shown: "gitlab_hosted_runner_monthly_usages",
    order:
      "row.billing_month, row.runner_id, row.root_namespace_id, row.project_id, row.usage_month",
  },
};

/** @param month the billing month, all of them if not said */
export function monthlyPages(
  tx: Transaction,
  name: MonthlyName,
  { log, below, month }: { log: string; below: bigint; month: string | undefined },
): AsyncIterable<Page> {
  const { shown, order } = VIEWS[name];
  const source = tx`
    select *
    from (${charges(tx, log, { from: 0n, to: below })}) as charge
    where ${month === undefined ? tx`true` : tx`billing_month = ${month}`}`;
  return cellPages(
    tx,
    tx`
    select ${tx.unsafe(cellsOf(TABLES[name]))}
    from (${countOf(tx, SHOWN[shown], source)}) as row
    order by ${tx.unsafe(order)}`,
  );
}
