/**
 * What compute minutes cost: a price list that somebody else keeps (docs/focus.md). Prices are exact decimals of
 * its one currency; nothing of it is on the log, and no figure of the log comes from it.
 */
import { z } from "zod";
import { sha256 } from "./hash.ts";
import { Problem } from "./problem.ts";
import { encodeBase64, encodeUtf8 } from "./text.ts";
import { NonEmptyText } from "./unit.ts";

/** A unit price is a multiple of 10^−10. */
export const PRICE_PLACES = 10;
const PRICE = /^(?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,10})?$/;

/** What is sold: compute minutes on one machine type, on each that has no price of its own, or beforehand. */
const Sku = z
  .string()
  .regex(/^(?:runner\/.+|pack)$/)
  .pipe(NonEmptyText);
export const ANY_RUNNER = "runner/*";
export const PACK = "pack";

export function runnerSku(machineType: string): string {
  return `runner/${machineType}`;
}

const Listed = z.strictObject({
  /** From the first instant of this day on, until the next price of the same. */
  effective_from: z.iso.date(),
  sku: Sku,
  /** Of one compute minute. */
  unit_price: z.string().regex(PRICE),
});
const Contracted = Listed.extend({
  /** Whose contract it is; without it, what all pay that have none. */
  account_id: NonEmptyText.exactOptional(),
});
type Contracted = z.infer<typeof Contracted>;

export const PriceList = z
  .strictObject({
    /** By number, what an account is called. */
    accounts: z.record(NonEmptyText, z.strictObject({ name: NonEmptyText })).default({}),
    contracted: z.array(Contracted).default([]),
    /** ISO 4217. */
    currency: z.string().regex(/^[A-Z]{3}$/),
    /** Whose machines the vendor's runners are; without it the provider's. */
    host_provider: NonEmptyText.exactOptional(),
    /** Who writes the invoices; without it the provider. */
    invoice_issuer: NonEmptyText.exactOptional(),
    list: z.array(Listed).min(1),
    /** What prices are thought of in, where that is no money; and what a compute minute is of it. */
    pricing_currency: z
      .strictObject({ name: NonEmptyText, unit_price: z.string().regex(PRICE) })
      .exactOptional(),
    provider: NonEmptyText,
    v: z.literal("1"),
  })
  .refine(({ list }) => isUnambiguous(list), "two list prices of one thing from one day on")
  .refine(({ contracted }) => isUnambiguous(contracted), "two prices of one thing from one day on");
export type PriceList = z.infer<typeof PriceList>;

export class Prices {
  readonly list: PriceList;
  readonly sha256: string;
  /** Of an account and a sku, newest first. */
  readonly #contracted: ReadonlyMap<string, readonly Contracted[]>;
  readonly #listed: ReadonlyMap<string, readonly Contracted[]>;

  /** @throws Error where the text is no price list: it says where */
  constructor(text: string) {
    this.list = PriceList.parse(JSON.parse(text));
    this.sha256 = encodeBase64(sha256(encodeUtf8(text)));
    this.#listed = bySku(this.list.list);
    this.#contracted = bySku(this.list.contracted);
  }

  /** In units of 10^−10. @param day `YYYY-MM-DD`. @throws Problem `no-price` */
  listed(sku: string, day: string): bigint {
    const found = newest(this.#listed, keysOf(undefined, sku), day);
    if (found === undefined) throw new Problem("no-price", { sku, day });
    return found;
  }

  /** As `listed`, of what an account pays: by its contract, else as all others, else as listed. */
  contracted(sku: string, day: string, account: string): bigint {
    const keys = [...keysOf(account, sku), ...keysOf(undefined, sku)];
    return newest(this.#contracted, keys, day) ?? this.listed(sku, day);
  }

  /** Of a compute minute, in units of 10^−10 of the pricing currency; undefined: prices are in money. */
  get virtual(): { name: string; unit: bigint } | undefined {
    const { pricing_currency: own } = this.list;
    return own && { name: own.name, unit: parsePrice(own.unit_price) };
  }

  nameOf(account: string): string | undefined {
    const { accounts } = this.list;
    return Object.hasOwn(accounts, account) ? accounts[account]?.name : undefined;
  }
}

function isUnambiguous(prices: readonly Contracted[]): boolean {
  const keys = prices.map(
    (price) => `${keyOf(price.account_id, price.sku)}\n${price.effective_from}`,
  );
  return new Set(keys).size === keys.length;
}

/** No text has a newline. */
function keyOf(account: string | undefined, sku: string): string {
  return `${account ?? ""}\n${sku}`;
}

/** Packs are no runners: what all runners cost is not what they cost. */
function keysOf(account: string | undefined, sku: string): string[] {
  return (sku === PACK ? [PACK] : [sku, ANY_RUNNER]).map((each) => keyOf(account, each));
}

function bySku(prices: readonly Contracted[]): Map<string, Contracted[]> {
  const found = new Map<string, Contracted[]>();
  for (const price of prices) {
    const key = keyOf(price.account_id, price.sku);
    found.set(key, [...(found.get(key) ?? []), price]);
  }
  for (const of of found.values())
    of.sort((a, b) => (a.effective_from > b.effective_from ? -1 : 1));
  return found;
}

/** Of the first key that has a price on that day. */
function newest(
  prices: ReadonlyMap<string, readonly Contracted[]>,
  keys: readonly string[],
  day: string,
): bigint | undefined {
  for (const key of keys) {
    const price = prices.get(key)?.find(({ effective_from }) => effective_from <= day);
    if (price !== undefined) return parsePrice(price.unit_price);
  }
  return undefined;
}

function parsePrice(text: string): bigint {
  const [whole = "", decimals = ""] = text.split(".");
  return BigInt(whole + decimals.padEnd(PRICE_PLACES, "0"));
}
