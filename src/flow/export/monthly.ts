/** Usage by month, in the columns of GitLab's own tables first. */
import { TABLES } from "../../core/export/tables.ts";
import { type MonthlyName, monthlyPages } from "../../store/export-monthly.ts";
import type { Source } from "./source.ts";

/**
 * A month that is cut off below `asOf` needs no look at its cut-off: nothing that came after it was posted to it.
 */
export function monthly(name: MonthlyName): Source {
  return ({ tx, log, asOf, parameters: { month } }) => ({
    columns: TABLES[name],
    pages: monthlyPages(tx, name, { log, below: asOf, month }),
  });
}
