/** Logs of a given age, made once for all rows that want one: sealed, folded, and at rest. */
import { join } from "node:path";
import { systemClock } from "../src/flow/clock.ts";
import { refresh } from "../src/flow/usage/fold.ts";
import { connect } from "../src/store/connect.ts";
import { fill, type Ledger, openLedger } from "./ledger.ts";
import type { BenchService } from "./service.ts";
import type { Run } from "./sizes.ts";

/** Over how many namespaces, each with one project, the builds of a history spread. */
export const HISTORY_NAMESPACES = 1_000;

/** A log of at least so many entries; a row that lets it grow leaves it so. */
export type Histories = (entries: number) => Promise<Ledger>;

/** What every row is given. */
export interface Context extends Run {
  histories: Histories;
  /** Started by the row that first wants it. */
  service: () => Promise<BenchService>;
}

export function openHistories({ folder, say, defer }: Run): Histories {
  const made = new Map<number, Promise<Ledger>>();
  const make = async (entries: number): Promise<Ledger> => {
    const ledger = await openLedger(join(folder, `history-${entries}`));
    defer(ledger.close);
    await fill(ledger, entries, HISTORY_NAMESPACES, say);
    await ledger.seal();
    await foldAll(ledger);
    await rest(ledger.urls.superuser);
    return ledger;
  };
  return (entries) => {
    const history = made.get(entries) ?? make(entries);
    made.set(entries, history);
    return history;
  };
}

/** One refresh takes a bounded number of entries. */
async function foldAll({ sql }: Ledger): Promise<void> {
  for (;;) {
    const outcome = await refresh({ sql, clock: systemClock });
    if (outcome !== "skipped" && outcome.entries === 0n) return;
  }
}

/** So that no vacuum and no checkpoint of the filling falls into a measurement. */
async function rest(superuser: string): Promise<void> {
  const sql = connect(superuser, { max: 1, name: "bench", limits: { statement: 0 } });
  await sql`vacuum analyze`;
  await sql`checkpoint`;
  await sql.end();
}
