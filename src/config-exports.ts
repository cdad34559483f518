/** What the configuration says about exports: where they are kept, for how long, and which nobody asks for. */
import { z } from "zod";
import { ConfigError } from "./config-error.ts";
import { readJson, readText } from "./config-files.ts";
import { wholeNumber } from "./config-value.ts";
import { Prices } from "./core/price.ts";
import { Rule } from "./flow/export/schedule.ts";

const DAY_MS = 86_400_000;

/** To be spread into the shape of the whole environment. */
export const ExportEnvironment = {
  EXPORT_URL: z.string().min(1).optional(),
  EXPORT_DAYS: wholeNumber(1, 36_500).default(90),
  EXPORTS_FILE: z.string().min(1).optional(),
  PRICE_LIST_FILE: z.string().min(1).optional(),
};

const Values = z.object(ExportEnvironment);

export interface ExportConfig {
  /** Undefined: inside the archive. */
  url: string | undefined;
  /** Of what is not kept for good. */
  keptMs: number;
  rules: readonly Rule[];
  /** What money in a FOCUS file comes from; undefined: it has none. */
  prices: Prices | undefined;
}

/** @throws ConfigError when a file cannot be read or does not have the shape */
export function exportsOf(values: z.infer<typeof Values>): ExportConfig {
  const { EXPORT_DAYS: days, EXPORT_URL: url, EXPORTS_FILE: file } = values;
  const rules = file === undefined ? [] : readJson(file, z.array(Rule));
  return { url, keptMs: days * DAY_MS, rules, prices: pricesOf(values.PRICE_LIST_FILE) };
}

function pricesOf(file: string | undefined): Prices | undefined {
  if (file === undefined) return undefined;
  const prices = parsed(file);
  const { currency } = prices.list;
  if (Intl.supportedValuesOf("currency").includes(currency)) return prices;
  throw new ConfigError(`${file}: ${currency} is no currency of ISO 4217`);
}

function parsed(file: string): Prices {
  const text = readText(file);
  try {
    return new Prices(text);
  } catch (error) {
    throw new ConfigError(`${file}: ${error instanceof Error ? error.message : ""}`, {
      cause: error,
    });
  }
}
