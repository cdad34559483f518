/** Every file that there is, by its name. */
import type { ExportName } from "../../core/export/tables.ts";
import { accountMap } from "./account-map.ts";
import { allocation } from "./allocation.ts";
import { entries } from "./entries.ts";
import { monthly } from "./monthly.ts";
import { packRollforward } from "./pack-rollforward.ts";
import { portal } from "./portal.ts";
import type { Source } from "./source.ts";

export const SOURCES = {
  account_map: accountMap,
  allocation,
  entries,
  monthly_hosted_runner: monthly("monthly_hosted_runner"),
  monthly_namespace: monthly("monthly_namespace"),
  monthly_project: monthly("monthly_project"),
  pack_rollforward: packRollforward,
  portal,
} as const satisfies Partial<Record<ExportName, Source>>;
