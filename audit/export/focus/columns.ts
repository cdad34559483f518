/** Columns that a FOCUS file must have, by version and by whether there is money in it (docs/focus.md). */
import type { Column } from "../../../src/core/export/tables.ts";

export const QUANTITY_PLACES = 6;
export const PRICE_PLACES = 10;
export const COST_PLACES = 16;
export const CONSUMED_PLACES = 3;

const COSTS = [
  ...["BilledCost", "ContractedCost", "EffectiveCost", "ListCost"],
  "PricingCurrencyEffectiveCost",
];
const PRICES = [
  ...["ContractedUnitPrice", "ListUnitPrice"],
  ...["PricingCurrencyContractedUnitPrice", "PricingCurrencyListUnitPrice"],
];
/** Besides, what a price list says. */
const SAID_WITH_PRICES = [
  ...["BillingAccountName", "BillingCurrency", "InvoiceIssuerName", "PricingCurrency"],
  ...["ProviderName", "PublisherName"],
];
const SINCE_1_3 = ["HostProviderName", "ServiceProviderName"];
/** What the specification asks for where there is money, and no price list is needed to say. */
const WITH_MONEY = [
  ...["CommitmentDiscountStatus", "InvoiceId", "PricingCategory", "SkuPriceDetails", "SkuPriceId"],
];

const ALWAYS: readonly Column[] = [
  ...[
    ...["BillingAccountId", "ChargeCategory", "ChargeClass", "ChargeDescription"],
    ...["ChargeFrequency", "ConsumedUnit", "PricingUnit", "ResourceId", "ResourceName"],
    ...["ResourceType", "ServiceCategory", "ServiceName", "ServiceSubcategory", "SkuId"],
    ...["SkuMeter", "SubAccountId", "SubAccountName", "x_Portion", "x_SubscriptionId"],
    "x_Tracking",
  ].map(text),
  ...["BillingPeriodEnd", "BillingPeriodStart", "ChargePeriodEnd", "ChargePeriodStart"].map(
    (name) => ({ name, type: "instant" }) as const,
  ),
  ...["x_NamespaceId", "x_Pack", "x_ProjectId"].map((name) => ({ name, type: "integer" }) as const),
  { name: "ConsumedQuantity", type: "decimal", places: CONSUMED_PLACES, summed: true },
  { name: "PricingQuantity", type: "decimal", places: QUANTITY_PLACES, summed: true },
  { name: "x_ComputeMs", type: "decimal", summed: true },
  { name: "x_UsageMonth", type: "day" },
];
const OF_PRICES: readonly Column[] = [
  ...COSTS.map((name) => {
    return { name, type: "decimal", places: COST_PLACES, summed: true } as const;
  }),
  ...PRICES.map((name) => ({ name, type: "decimal", places: PRICE_PLACES }) as const),
  ...[...SAID_WITH_PRICES, ...SINCE_1_3].map(text),
];
const VERSIONS = ["1.2", "1.3"];

/** That are a price list's: none else can say what is right in them. */
export const PRICED: ReadonlySet<string> = new Set(OF_PRICES.map(({ name }) => name));

/** In no order; undefined for a version of the specification that is not known here. */
export function focusColumns(version: string, withMoney: boolean): readonly Column[] | undefined {
  if (!VERSIONS.includes(version)) return undefined;
  if (!withMoney) return [...ALWAYS, text("x_NotConformant")];
  const all = [...ALWAYS, ...WITH_MONEY.map(text), ...OF_PRICES];
  return version === "1.2" ? all.filter(({ name }) => !SINCE_1_3.includes(name)) : all;
}

function text(name: string): Column {
  return { name, type: "text" };
}
