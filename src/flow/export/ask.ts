/** An export is asked for: what can be wrong with it is said at once, and the rest is made behind it. */
import { z } from "zod";
import { MEMBERS, Parameters } from "../../core/export/manifest.ts";
import { EXPORT_NAMES, type ExportName, FORMATS } from "../../core/export/tables.ts";
import { canonical } from "../../core/json.ts";
import { told } from "../../core/misfit.ts";
import type { Prices } from "../../core/price.ts";
import { type Extension, Problem } from "../../core/problem.ts";
import { encodeHex } from "../../core/text.ts";
import { instantText, monthOf, PositiveText } from "../../core/unit.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import {
  type Covering,
  countPending,
  insertExport,
  lockAsking,
  type NewExportRow,
  readCovering,
  readExport,
} from "../../store/exports.ts";
import { transact } from "../../store/transact.ts";
import type { Clock, Random } from "../clock.ts";
import { completed, isFocusVersion } from "./focus.ts";
import { type ShownExport, shown } from "./read.ts";

/** Without `as_of`: all that an archived checkpoint covers now. Of no entry at all nothing can be said. */
export const NewExport = Parameters.extend({
  as_of: PositiveText.exactOptional(),
  format: z.enum(FORMATS),
  name: z.enum(EXPORT_NAMES),
});
export type NewExport = z.infer<typeof NewExport>;

export interface Asking {
  /** As writer. */
  sql: Sql;
  clock: Clock;
  random: Random;
  /** What money in a FOCUS file comes from; without it there is none. */
  prices?: Prices | undefined;
}

const ID_BYTES = 16;
/** Of one log, at once. */
const PENDING_MAX = 100n;

/**
 * @throws Problem `invalid-request` naming the members that this file does not have, or needs, or of which
 *   nothing can be said yet; `not-sealed`; `busy` while too many wait
 */
export async function ask(
  asking: Asking,
  { log, by }: { log: string; by: string },
  { as_of, format, name, ...parameters }: NewExport,
): Promise<ShownExport> {
  const { sql, clock } = asking;
  const covering = await readCovering(sql, log);
  const asOf = as_of === undefined ? covering?.size : BigInt(as_of);
  if (covering === undefined || asOf === undefined || asOf > covering.size) {
    throw new Problem("not-sealed");
  }
  const unfit = unfitting(name, parameters, { asOf, month: monthOf(instantText(clock.now())) });
  if ("members" in unfit) throw new Problem("invalid-request", unfit);
  const said = {
    log,
    name,
    format,
    parameters: canonical(completed(name, parameters, asking.prices)),
    as_of: asOf,
  };
  const origin = { asked_by: by, origin: null, kept: false, deliver_to: null };
  const row = { ...newRow(asking, covering), ...said, ...origin };
  await insertBounded(sql, row);
  const asked = await readExport(sql, row);
  if (asked === undefined) throw new Error("exports: one that was just asked for is missing");
  return shown(asked);
}

async function insertBounded(sql: Sql, row: NewExportRow): Promise<void> {
  const insert = async (tx: Transaction): Promise<void> => {
    // The lock comes before the look: many that ask at once must not all find room for one more.
    await lockAsking(tx, row.log);
    if ((await countPending(tx, row.log)) >= PENDING_MAX) throw new Problem("busy");
    await insertExport(tx, row);
  };
  await transact(sql, insert, "isolation level read committed");
}

type Fresh = Pick<NewExportRow, "id" | "asked_at" | "checkpoint_size" | "checkpoint_root">;

export function newRow({ clock, random }: Asking, { size, root }: Covering): Fresh {
  const id = encodeHex(random(ID_BYTES));
  return { id, asked_at: new Date(clock.now()), checkpoint_size: size, checkpoint_root: root };
}

export function isOfMonth(name: ExportName): boolean {
  return MEMBERS[name].month !== undefined;
}

/** Members that this file does not have, or of which nothing is known: whenever it is asked for. */
export function unknownTo(name: ExportName, parameters: Parameters): string[] {
  const known: readonly string[] = Object.keys(MEMBERS[name]);
  const strange = Object.keys(parameters).filter((member) => !known.includes(member));
  const { focus_version: version } = parameters;
  const unknown = version !== undefined && !isFocusVersion(version) ? ["focus_version"] : [];
  return [...strange, ...unknown];
}

/** Members that do not fit, and how. */
function unfitting(
  name: ExportName,
  parameters: Parameters,
  now: { asOf: bigint; month: string },
): Extension {
  const { from, month } = parameters;
  const missing = month === undefined && MEMBERS[name].month === "needed" ? ["month"] : [];
  // Nothing can have been posted to a month that has not begun.
  const early = month !== undefined && month > now.month ? ["month"] : [];
  const beyond = from !== undefined && BigInt(from) > now.asOf ? ["from"] : [];
  const not_allowed = new Set([...unknownTo(name, parameters), ...early, ...beyond]);
  return told({ missing, not_allowed });
}
