/** `--from` and `--to`: some of a log's entries instead of all. */
import { type Command, InvalidArgumentError } from "commander";
import type { Range } from "../fetch/range.ts";
import { CannotLook } from "../finding.ts";

export interface RangeOptions {
  from?: bigint;
  to?: bigint;
}

const INDEX = /^(?:0|[1-9][0-9]{0,18})$/;

export function ranging(command: Command): Command {
  return command
    .option("--from <index>", "the first entry (0 without it), of a range", wholeNumber)
    .option("--to <index>", "the last entry (the log's last without it), of a range", wholeNumber);
}

/** Undefined for the whole log. Throws `CannotLook` on a range that ends before it begins. */
export function rangeOf({ from, to }: RangeOptions): Range | undefined {
  if (from === undefined && to === undefined) return undefined;
  const first = from ?? 0n;
  if (to !== undefined && first > to)
    throw new CannotLook("a range ends where it begins, or later");
  return { first, last: to };
}

/** For options that are indices, sizes or ids. */
export function wholeNumber(text: string): bigint {
  if (!INDEX.test(text)) throw new InvalidArgumentError("Expected a whole number.");
  return BigInt(text);
}
