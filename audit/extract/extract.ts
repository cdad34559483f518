/** What an extract is: rows from a log's entries alone, of a period, for named controls of docs/controls.md. */
import type { Entry, EntryOf, Kind } from "../../src/core/entry.ts";

/** All texts, by the extract's columns. */
export type Row = Readonly<Record<string, string>>;

/** Days, half-open. */
export interface Period {
  from: string;
  to: string;
}

export interface Taking {
  /** Entries before the period's end, in their order, those before its beginning too. */
  take(entry: Entry): void;
  /** @param at of the last entry of the log: what comes after is not known */
  end?(at: string): void;
}

export interface Extract {
  /** Of its file. */
  name: string;
  /** In a sentence. */
  what: string;
  controls: readonly string[];
  columns: readonly string[];
  /** Columns whose sum the footer gives: decimals, or integers. */
  sums?: readonly string[];
  open(period: Period, put: (row: Row) => void): Taking;
}

/** An extract of one row, or some, for each entry of the period; with `history`, of those before it too. */
export function rowsOf<K extends Kind>(
  named: Omit<Extract, "open"> & { history?: true },
  kinds: readonly K[],
  rows: (entry: EntryOf<K>) => Row[],
): Extract {
  const { history, ...extract } = named;
  const wanted: readonly string[] = kinds;
  return {
    ...extract,
    columns: ["index", "at", "kind", ...extract.columns],
    open: ({ from }, put) => ({
      take: (entry) => {
        if (!wanted.includes(entry.kind) || (history === undefined && entry.at < from)) return;
        const { at, index, kind } = entry;
        for (const row of rows(entry as EntryOf<K>))
          put({ index: String(index), at, kind, ...row });
      },
    }),
  };
}

/**
 * An extract of one row for each day of the period that the log was there for.
 * @param missing of a day that no entry is about
 * @param rowOf of an entry that is about a day, which it names
 */
export function daysOf(
  named: Omit<Extract, "open">,
  missing: Row,
  rowOf: (entry: Entry) => (Row & { day: string }) | undefined,
): Extract {
  return {
    ...named,
    columns: ["day", "index", "at", ...named.columns],
    open: ({ from, to }, put) => {
      const said = new Map<string, Row>();
      let begun = "";
      return {
        take: (entry) => {
          begun ||= dayOf(entry.at);
          const row = rowOf(entry);
          if (row === undefined || row.day < from) return;
          said.set(row.day, { index: String(entry.index), at: entry.at, ...row });
        },
        end: (at) => {
          if (begun === "") return;
          const last = dayOf(at) < to ? nextDay(dayOf(at)) : to;
          for (let day = begun > from ? begun : from; day < last; day = nextDay(day)) {
            put(said.get(day) ?? { day, index: "", at: "", ...missing });
          }
        },
      };
    },
  };
}

const DAY_MS = 86_400_000;

function dayOf(at: string): string {
  return at.slice(0, "YYYY-MM-DD".length);
}

function nextDay(day: string): string {
  return dayOf(new Date(Date.parse(day) + DAY_MS).toISOString());
}

/** Whole days from one instant to another. */
export function daysFrom(at: string, until: string): string {
  return String(Math.floor((Date.parse(until) - Date.parse(at)) / DAY_MS));
}
