/**
 * log = rollups = allocations = exports = acknowledged, to the last digit (docs/tie-out.md). Every leg is read where
 * it lies, and none of them is derived from another one here.
 */
import { Problem } from "../../core/problem.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import type { ExportFiles } from "../../store/export-files.ts";
import { readHead } from "../../store/heads.ts";
import type { MonthEnd } from "../../store/month-ends.ts";
import { readWatermark } from "../../store/watermarks.ts";
import { bePatient } from "../month/patience.ts";
import { type ShownMonth, shownMonth } from "../month/show.ts";
import { readStanding } from "../month/standing.ts";
import { snapshot } from "../usage/show.ts";
import { acknowledgedLegs } from "./acknowledged.ts";
import { entriesLeg, logLeg, rollupLegs } from "./counted.ts";
import { type AskedFile, askedFiles, fileLegs } from "./files.ts";
import { accountsLeg, allocationsLeg, closedLeg, packRollsLeg, statementLeg } from "./kept.ts";
import {
  differencesIn,
  type Figures,
  figuresOf,
  type Leg,
  type ShownFigure,
  type TieDifference,
} from "./leg.ts";

interface OfMonth {
  log: string;
  month: string;
}

export interface TieOut extends ShownMonth {
  log: string;
  /** Entries 0 … as_of−1 are counted: those before the cut-off, or all that are folded. */
  as_of: string;
  figures: ShownFigure[];
  differences: TieDifference[];
  /** Legs that cannot say anything yet. */
  not_yet: string[];
}

/** @throws Problem `not-found` for a log that there is not, `exports-unavailable`, `busy` */
export async function tieOut(
  { sql, files }: { sql: Sql; files: ExportFiles },
  of: OfMonth,
): Promise<TieOut> {
  const { acknowledged, asked, legs, shown, signed, ...found } = await snapshot(sql, (tx) => {
    return look(tx, of);
  });
  // Outside of the snapshot: files may be far away, and none of them changes.
  for (const file of asked) legs.push(...(await fileLegs(files, file, signed)));
  const figures = figuresOf([...legs, ...acknowledged]);
  return { log: of.log, ...shown, ...found, figures, differences: differencesIn(figures) };
}

/** What stands in the database, as of one moment. */
async function look(tx: Transaction, of: OfMonth) {
  await bePatient(tx);
  const { log, month } = of;
  if ((await readHead(tx, log)) === undefined) throw new Problem("not-found");
  const standing = await readStanding(tx, log);
  const shown = shownMonth(standing, month);
  const folded = (await readWatermark(tx, log))?.size ?? 0n;
  const closing = shown.closing === undefined ? folded : BigInt(shown.closing);
  const below = closing < folded ? closing : folded;
  const counted = await logLeg(tx, { ...of, below });
  const placed = await entriesLeg(tx, { ...of, below });
  const rollups = await rollupLegs(tx, { ...of, below });
  const end = standing.ends.find((each) => each.month === month);
  const { said, ...kept } = end === undefined ? NOT_CLOSED : await keptOf(tx, of, end);
  return {
    shown,
    as_of: String(below),
    ...kept,
    legs: [counted, ...said, placed, ...rollups, ...kept.legs],
  };
}

/** What there is only when a month is closed. */
interface Kept {
  /** Its entry, and its statement. */
  said: Leg[];
  legs: Leg[];
  acknowledged: Leg[];
  asked: AskedFile[];
  /** What `month_closed` says. */
  signed: Figures;
  not_yet: string[];
}

const NOT_CLOSED: Kept = {
  ...{ said: [], legs: [], acknowledged: [], asked: [], signed: {} },
  not_yet: ["month_closed", "statement", "allocations", "pack_rolls", "exports", "acknowledged"],
};

async function keptOf(tx: Transaction, of: OfMonth, end: MonthEnd): Promise<Kept> {
  const closed = await closedLeg(tx, of.log, end);
  const accounts = await accountsLeg(tx, of, end);
  const { legs: acknowledged, waiting } = await acknowledgedLegs(tx, of, end.index);
  const asked = await askedFiles(tx, of);
  const unmade = asked.filter(([, row]) => row === undefined || row.state === "pending");
  const late = [...unmade.map(([name]) => `exports/${name}`), ...waiting];
  const found = { acknowledged, asked, signed: closed.figures };
  const statement = await statementLeg(tx, of);
  // Its rows are written with it.
  if (statement === undefined) {
    const missing = ["statement", "allocations", "pack_rolls"];
    return { ...found, said: [closed], legs: [accounts], not_yet: [...missing, ...late] };
  }
  const legs = [accounts, await allocationsLeg(tx, of), await packRollsLeg(tx, of)];
  return { ...found, said: [closed, statement], legs, not_yet: late };
}
