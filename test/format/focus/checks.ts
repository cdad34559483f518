/** What rules of the FOCUS specification ask of a row, or of a file. Nothing satisfies whatever is not about null. */

import { isWellFormed } from "../../../src/core/text.ts";

export type Cells = Readonly<Record<string, string | null>>;

export interface Sheet {
  columns: readonly string[];
  rows: readonly Cells[];
}

export type Check = (row: Cells, sheet: Sheet) => boolean;

const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?$/;
const INSTANT = /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$/;
/** Of the units that the specification names or lets be counted, those with words and nothing else. */
const UNIT = /^[A-Z][A-Za-z]*(?: [A-Z][A-Za-z]*)*s$/;

export function present(column: string): Check {
  return (_, { columns }) => columns.includes(column);
}

export function given(column: string): Check {
  return (row) => cell(row, column) !== null;
}

export function none(column: string): Check {
  return not(given(column));
}

/** Valid Unicode, and not spaces alone. */
export function string(column: string): Check {
  return satisfies(column, (text) => isWellFormed(text) && text.trim() !== "");
}

/** A single number without plus, separators, qualifiers or exponent. */
export function number(column: string): Check {
  return satisfies(column, (text) => NUMBER.test(text) && !/^-0(?:\.0*)?$/.test(text));
}

export function instant(column: string): Check {
  return satisfies(column, (text) => INSTANT.test(text) && !Number.isNaN(Date.parse(text)));
}

export function unit(column: string): Check {
  return satisfies(column, (text) => UNIT.test(text));
}

export function currency(column: string): Check {
  const known = new Set(Intl.supportedValuesOf("currency"));
  return satisfies(column, (text) => known.has(text));
}

/** A JSON object of numbers, texts, booleans and nulls. */
export function keyValue(column: string): Check {
  return satisfies(column, (text) => {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return false;
    return Object.values(value).every((each) => typeof each !== "object" || each === null);
  });
}

export function is(column: string, ...values: readonly string[]): Check {
  return (row) => values.includes(cell(row, column) ?? "");
}

export function zero(column: string): Check {
  return (row) => /^0(?:\.0*)?$/.test(cell(row, column) ?? "");
}

export function notBelowZero(column: string): Check {
  return satisfies(column, (text) => !text.startsWith("-"));
}

export function same(a: string, b: string): Check {
  return (row) => cell(row, a) === cell(row, b);
}

/** Exactly, in whatever places they are written. */
export function product(a: string, b: string, result: string): Check {
  return (row) => {
    const [x, y, z] = [fraction(cell(row, a)), fraction(cell(row, b)), fraction(cell(row, result))];
    return x.digits * y.digits * 10n ** z.places === z.digits * 10n ** (x.places + y.places);
  };
}

/** Each value of `column` has one value of `of`. */
export function one(column: string, of: string): Check {
  return (row, { rows }) => {
    const value = cell(row, column);
    const others = rows.filter((each) => value !== null && cell(each, column) === value);
    return others.every((each) => cell(each, of) === cell(row, of));
  };
}

export function not(check: Check): Check {
  return (row, sheet) => !check(row, sheet);
}

export function all(...checks: readonly Check[]): Check {
  return (row, sheet) => checks.every((check) => check(row, sheet));
}

export function when(condition: Check, check: Check): Check {
  return (row, sheet) => !condition(row, sheet) || check(row, sheet);
}

function satisfies(column: string, is: (text: string) => boolean): Check {
  return (row) => {
    const text = cell(row, column);
    return text === null || is(text);
  };
}

function cell(row: Cells, column: string): string | null {
  return row[column] ?? null;
}

function fraction(text: string | null): { digits: bigint; places: bigint } {
  const [whole = "", decimals = ""] = (text ?? "").split(".");
  return { digits: BigInt(whole + decimals), places: BigInt(decimals.length) };
}
