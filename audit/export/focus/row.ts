/** What one row of a FOCUS file must hold in itself, whatever it is about. */
import { micro } from "../../tally/record.ts";
import type { CellOf } from "./charges.ts";

/** A quantity times a unit price is a cost, in full. */
const COSTS = [
  ["ListCost", "ListUnitPrice"],
  ["ContractedCost", "ContractedUnitPrice"],
] as const;
/** In 10⁻⁶ compute-milliseconds: a quantity's last digit, a millionth of a minute. */
const LAST_DIGIT = 60_000n;

/** In words; a row of a file without money has no costs. */
export function faultsIn(cell: CellOf, withMoney: boolean): string[] {
  const faults: string[] = [];
  const quantity = decimal(cell("PricingQuantity"));
  const off = quantity && quantity.digits * LAST_DIGIT - micro(cell("x_ComputeMs"));
  if (quantity?.places !== 6 || off === undefined || off > LAST_DIGIT || off < -LAST_DIGIT) {
    faults.push(`PricingQuantity ${cell("PricingQuantity")} of ${cell("x_ComputeMs")} compute-ms`);
  }
  for (const [cost, price] of withMoney ? COSTS : []) {
    if (!isProduct(cell("PricingQuantity"), cell(price), cell(cost))) {
      faults.push(`${cost} ${cell(cost)}, not ${cell("PricingQuantity")} × ${cell(price)}`);
    }
  }
  return faults;
}

interface Decimal {
  digits: bigint;
  places: number;
}

/** Undefined for what is no decimal. */
export function decimal(text: string): Decimal | undefined {
  const [, sign = "", whole, places = ""] = /^(-?)([0-9]+)(?:\.([0-9]+))?$/.exec(text) ?? [];
  if (whole === undefined) return undefined;
  return { digits: BigInt(`${sign}${whole}${places}`), places: places.length };
}

function isProduct(a: string, b: string, product: string): boolean {
  const [left, right, whole] = [decimal(a), decimal(b), decimal(product)];
  if (left === undefined || right === undefined || whole === undefined) return false;
  const exact = left.digits * right.digits * 10n ** BigInt(whole.places);
  return exact === whole.digits * 10n ** BigInt(left.places + right.places);
}
