/** Columns of a FOCUS file, by version of the specification (docs/focus.md): its own first, then ours, `x_…`. */
import type { Column, ColumnType } from "../../core/export/tables.ts";
import { PRICE_PLACES } from "../../core/price.ts";

export const FOCUS_VERSIONS = ["1.2", "1.3"] as const;
export type FocusVersion = (typeof FOCUS_VERSIONS)[number];

/** Of compute minutes: a millionth is less than a tenth of a millisecond of machine time. */
export const QUANTITY_PLACES = 6;
/** So that a quantity times a price is written in full. */
export const COST_PLACES = QUANTITY_PLACES + PRICE_PLACES;
/** Of seconds: whole milliseconds. */
export const CONSUMED_PLACES = 3;

interface Definition extends Column {
  /** Only in a file with money in it, or only in one without. */
  readonly only?: "money" | "quantity";
  readonly since?: FocusVersion;
}

const COLUMNS: readonly Definition[] = [
  money(decimal("BilledCost", COST_PLACES)),
  // Only what nobody is charged for may have no account.
  { ...text("BillingAccountId"), only: "money" },
  { ...orNull(text("BillingAccountId")), only: "quantity" },
  money(orNull(text("BillingAccountName"))),
  money(text("BillingCurrency")),
  column("BillingPeriodEnd", "instant"),
  column("BillingPeriodStart", "instant"),
  text("ChargeCategory"),
  orNull(text("ChargeClass")),
  text("ChargeDescription"),
  text("ChargeFrequency"),
  column("ChargePeriodEnd", "instant"),
  column("ChargePeriodStart", "instant"),
  // Always nothing: packs are no commitment. What is asked of ConsumedQuantity is asked by it, and readers look there.
  money(orNull(text("CommitmentDiscountStatus"))),
  orNull(decimal("ConsumedQuantity", CONSUMED_PLACES)),
  orNull(text("ConsumedUnit")),
  money(decimal("ContractedCost", COST_PLACES)),
  money(price("ContractedUnitPrice")),
  money(decimal("EffectiveCost", COST_PLACES)),
  { ...money(text("HostProviderName")), since: "1.3" },
  money(orNull(text("InvoiceId"))),
  money(text("InvoiceIssuerName")),
  money(decimal("ListCost", COST_PLACES)),
  money(price("ListUnitPrice")),
  money(text("PricingCategory")),
  money(text("PricingCurrency")),
  money(price("PricingCurrencyContractedUnitPrice")),
  money(decimal("PricingCurrencyEffectiveCost", COST_PLACES)),
  money(price("PricingCurrencyListUnitPrice")),
  decimal("PricingQuantity", QUANTITY_PLACES),
  text("PricingUnit"),
  // Replaced in 1.3, which still asks for both.
  money(text("ProviderName")),
  money(text("PublisherName")),
  orNull(text("ResourceId")),
  orNull(text("ResourceName")),
  orNull(text("ResourceType")),
  text("ServiceCategory"),
  text("ServiceName"),
  { ...money(text("ServiceProviderName")), since: "1.3" },
  text("ServiceSubcategory"),
  orNull(text("SkuId")),
  orNull(text("SkuMeter")),
  money(orNull(column("SkuPriceDetails", "json"))),
  money(orNull(text("SkuPriceId"))),
  text("SubAccountId"),
  text("SubAccountName"),
  // The first of ours in a file that does not conform says so.
  { ...text("x_NotConformant"), only: "quantity" },
  { ...decimal("x_ComputeMs", 6), summed: true },
  column("x_NamespaceId", "integer"),
  orNull(column("x_Pack", "integer")),
  text("x_Portion"),
  orNull(column("x_ProjectId", "integer")),
  orNull(text("x_SubscriptionId")),
  text("x_Tracking"),
  column("x_UsageMonth", "day"),
];

/** @param withMoney false: there is no price list, so that no column may be about money */
export function focusColumns(version: FocusVersion, withMoney: boolean): readonly Column[] {
  const absent = withMoney ? "quantity" : "money";
  return COLUMNS.filter(({ only, since }) => {
    return only !== absent && (since === undefined || since <= version);
  }).map(({ only: _only, since: _since, ...column }) => column);
}

function column(name: string, type: ColumnType): Column {
  return { name, type };
}

function text(name: string): Column {
  return column(name, "text");
}

/** An amount, of which the sum over all rows means something. */
function decimal(name: string, places: number): Column {
  return { ...column(name, "decimal"), places, summed: true };
}

function price(name: string): Column {
  return { ...column(name, "decimal"), places: PRICE_PLACES };
}

function money(column: Column): Definition {
  return { ...column, only: "money" };
}

function orNull(column: Column): Column {
  return { ...column, nullable: true };
}
