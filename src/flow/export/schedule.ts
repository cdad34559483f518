/** Exports that nobody has to ask for: each day, and of each month that is closed. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { Parameters } from "../../core/export/manifest.ts";
import { EXPORT_NAMES, type ExportName, FORMATS } from "../../core/export/tables.ts";
import { canonical } from "../../core/json.ts";
import type { Prices } from "../../core/price.ts";
import { instantText, LogId, monthOf } from "../../core/unit.ts";
import { assertExportLocation } from "../../store/export-location.ts";
import {
  insertExport,
  listLogsWithout,
  listMonthsWithout,
  type NewExportRow,
} from "../../store/exports.ts";
import { type Asking, isOfMonth, newRow, unknownTo } from "./ask.ts";
import { completed } from "./focus.ts";

/** The price list is the one that the process has. */
const Chosen = Parameters.omit({ from: true, month: true, prices_sha256: true });

/** One line of EXPORTS_FILE. The month is the one that was closed, or that the day before lies in. */
export const Rule = Chosen.extend({
  every: z.enum(["day", "month_closed"]),
  format: z.enum(FORMATS),
  logs: z.union([z.literal("*"), z.array(LogId).min(1)]),
  name: z.enum(EXPORT_NAMES),
  /** A folder or a bucket that gets a copy, with its manifest. */
  to: z.string().min(1).refine(isLocation, { error: "no folder, nor a bucket" }).exactOptional(),
}).refine(
  ({ every: _, format: __, logs: ___, name, to: ____, ...chosen }) => {
    return unknownTo(name, chosen).length === 0;
  },
  { error: "a member that this file does not have, or a version that is not known" },
);
export type Rule = z.infer<typeof Rule>;

function isLocation(text: string): boolean {
  try {
    assertExportLocation(text);
    return true;
  } catch {
    return false;
  }
}

export interface Scheduling extends Asking {
  rules: readonly Rule[];
  /** Of each closed month, whatever the rules say. */
  closingSet: readonly ExportName[];
}

const DAY_MS = 86_400_000;
/** Of one rule, at once; the others in the next round. */
const ASKED_MAX = 100;

/** Each is asked for once, by whichever process comes first. */
export async function askDue(scheduling: Scheduling): Promise<void> {
  const { closingSet, rules } = scheduling;
  for (const name of closingSet) {
    const rule = { every: "month_closed", format: "csv", logs: "*", name } as const;
    await askMonthly(scheduling, rule, closingOrigin(name));
  }
  for (const rule of rules) {
    if (rule.every === "day") await askDaily(scheduling, rule);
    else await askMonthly(scheduling, rule);
  }
}

/** By what the files of closed months are known to be asked for: this, and the month. */
export function closingOrigin(name: ExportName): string {
  return `closing/${name}/`;
}

/** By what is known to be asked for: the rule with all that it says. */
function originOf(rule: Rule): string {
  return `${rule.every}/${createHash("sha256").update(canonical(rule)).digest("hex").slice(0, 32)}/`;
}

async function askDaily(asking: Asking, rule: Rule): Promise<void> {
  const { sql, clock } = asking;
  const now = clock.now();
  const origin = originOf(rule) + instantText(now).slice(0, "YYYY-MM-DD".length);
  const month = monthOf(instantText(now - DAY_MS));
  for (const { log, ...covering } of await listLogsWithout(sql, origin, rule.logs, ASKED_MAX)) {
    const row = { ...newRow(asking, covering), ...saidBy(rule, month, asking.prices), log };
    await insertExport(sql, { ...row, as_of: covering.size, origin, kept: false });
  }
}

/** Kept: they would be asked for again if they were not there. */
async function askMonthly(asking: Asking, rule: Rule, origin = originOf(rule)): Promise<void> {
  const { sql } = asking;
  const months = await listMonthsWithout(sql, origin, rule.logs, ASKED_MAX);
  for (const { log, month, closing, ...covering } of months) {
    const row = {
      ...newRow(asking, covering),
      ...saidBy(rule, month, asking.prices),
      log,
      as_of: closing,
    };
    await insertExport(sql, { ...row, origin: origin + month, kept: true });
  }
}

type Said = Pick<NewExportRow, "name" | "format" | "parameters" | "asked_by" | "deliver_to">;

function saidBy(rule: Rule, month: string, prices: Prices | undefined): Said {
  const { every: _, format, logs: __, name, to, ...chosen } = rule;
  const said = { ...chosen, ...(isOfMonth(name) && { month }) };
  const parameters = canonical(completed(name, said, prices));
  return { name, format, parameters, asked_by: "", deliver_to: to ?? null };
}
