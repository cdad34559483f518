/** A price list that the auditor was given, read by its own code (docs/focus.md). */
import type { Manifest } from "../../../src/core/export/manifest.ts";
import type { Sha256 } from "../../../src/core/hash.ts";
import { PriceList } from "../../../src/core/price.ts";
import { decodeUtf8, encodeBase64 } from "../../../src/core/text.ts";
import { CannotLook } from "../../finding.ts";
import { PRICE_PLACES } from "./columns.ts";
import { Unmade } from "./unmade.ts";

/** @throws CannotLook for a list that is not the one of the file's manifest, or none at all */
export function openPriceList(bytes: Uint8Array, { parameters }: Manifest, hash: Sha256): Priced {
  const { prices_sha256: named } = parameters;
  if (named === undefined) throw new CannotLook("the file was made without a price list");
  const own = encodeBase64(hash(bytes));
  if (own !== named) {
    throw new CannotLook(`the price list has SHA-256 ${own}, and the file was made with ${named}`);
  }
  const list = PriceList.safeParse(parsed(bytes)).data;
  if (list === undefined) throw new CannotLook("the price list is none that this version can read");
  return new Priced(list);
}

type Price = PriceList["contracted"][number];

export class Priced {
  readonly list: PriceList;
  /** By account, `""` for all, and by what is sold. */
  readonly #contracted: ReadonlyMap<string, Price[]>;
  readonly #listed: ReadonlyMap<string, Price[]>;

  constructor(list: PriceList) {
    this.list = list;
    this.#contracted = grouped(list.contracted);
    this.#listed = grouped(list.list);
  }

  /** In 10⁻¹⁰ for a compute minute. @param day `YYYY-MM-DD` @throws Unmade */
  listed(sku: string, day: string): bigint {
    const unit = inForce(this.#listed, [["", sku], ...anyRunner("", sku)], day);
    if (unit === undefined) throw new Unmade(`the price list has no price of ${sku} on ${day}`);
    return unit;
  }

  /** What an account pays: by its own contract, by everybody's, or as listed. @throws Unmade */
  contracted(sku: string, day: string, account: string): bigint {
    const own = [[account, sku] as const, ...anyRunner(account, sku)];
    const all = [["", sku] as const, ...anyRunner("", sku)];
    return inForce(this.#contracted, [...own, ...all], day) ?? this.listed(sku, day);
  }

  accountName(account: string): string | null {
    return new Map(Object.entries(this.list.accounts)).get(account)?.name ?? null;
  }

  /** What a minute is of the currency that prices are thought of in, if that is no money. */
  get credit(): { name: string; unit: bigint } | undefined {
    const { pricing_currency: own } = this.list;
    return own && { name: own.name, unit: priceOf(own.unit_price) };
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decodeUtf8(bytes) ?? "");
  } catch {
    return undefined; // not JSON, so no price list
  }
}

type Key = readonly [account: string, sku: string];

function keyOf({ account_id = "", sku }: Price): string {
  return JSON.stringify([account_id, sku]);
}

function grouped(prices: readonly Price[]): Map<string, Price[]> {
  const groups = new Map<string, Price[]>();
  for (const price of prices) {
    const group = groups.get(keyOf(price));
    if (group === undefined) groups.set(keyOf(price), [price]);
    else group.push(price);
  }
  return groups;
}

/** What all machine types cost that have no price of their own. */
function anyRunner(account: string, sku: string): Key[] {
  return sku.startsWith("runner/") ? [[account, "runner/*"]] : [];
}

/** The first of the keys that has begun by that day, and of its prices the one that began last. */
function inForce(
  prices: ReadonlyMap<string, readonly Price[]>,
  keys: readonly Key[],
  day: string,
): bigint | undefined {
  for (const [account_id, sku] of keys) {
    const begun = (prices.get(JSON.stringify([account_id, sku])) ?? []).filter(
      ({ effective_from }) => effective_from <= day,
    );
    const [first, ...rest] = begun;
    if (first === undefined) continue;
    const last = rest.reduce((a, b) => (b.effective_from > a.effective_from ? b : a), first);
    return priceOf(last.unit_price);
  }
  return undefined;
}

function priceOf(text: string): bigint {
  const [whole = "", places = ""] = text.split(".");
  return BigInt(`${whole}${places.padEnd(PRICE_PLACES, "0")}`);
}
