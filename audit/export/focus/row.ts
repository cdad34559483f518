/** What one row of a FOCUS file must hold in itself, whatever a price list says. */

/** A quantity times a unit price is a cost, in full. */
const PRODUCTS = [
  ["ListCost", "ListUnitPrice"],
  ["ContractedCost", "ContractedUnitPrice"],
] as const;

/** In words. */
export function faultsIn(cell: (column: string) => string): string[] {
  return PRODUCTS.flatMap(([cost, price]) => {
    if (isProduct(cell("PricingQuantity"), cell(price), cell(cost))) return [];
    return [`${cost} ${cell(cost)}, not ${cell("PricingQuantity")} × ${cell(price)}`];
  });
}

const DECIMAL = /^(-?)([0-9]+)(?:\.([0-9]+))?$/;

export function isDecimal(text: string): boolean {
  return DECIMAL.test(text);
}

function isProduct(a: string, b: string, product: string): boolean {
  const [left, right, whole] = [decimal(a), decimal(b), decimal(product)];
  if (left === undefined || right === undefined || whole === undefined) return false;
  const exact = left.digits * right.digits * 10n ** BigInt(whole.places);
  return exact === whole.digits * 10n ** BigInt(left.places + right.places);
}

/** Undefined for what is no decimal. */
function decimal(text: string): { digits: bigint; places: number } | undefined {
  const [, sign = "", whole, places = ""] = DECIMAL.exec(text) ?? [];
  if (whole === undefined) return undefined;
  return { digits: BigInt(`${sign}${whole}${places}`), places: places.length };
}
