/** Which account pays for which namespace, from when on. */
import { TABLES } from "../../core/export/tables.ts";
import { accountPages } from "../../store/export-accounts.ts";
import type { Source } from "./source.ts";

export const accountMap: Source = ({ tx, log, asOf }) => ({
  columns: TABLES.account_map,
  pages: accountPages(tx, { log, below: asOf }),
});
