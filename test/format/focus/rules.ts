/**
 * Static rules of FOCUS 1.2 (requirements model 1.2.0.1), each under its id, for every column that a file with
 * money has. Rules that only gather others, and those that say what may be, ask for nothing and are not here; of
 * lists of allowed values those values are that a runner of builds can have.
 */
import {
  all,
  type Cells,
  type Check,
  currency,
  given,
  instant,
  is,
  keyValue,
  none,
  not,
  notBelowZero,
  number,
  one,
  present,
  product,
  type Sheet,
  same,
  string,
  unit,
  when,
  zero,
} from "./checks.ts";

const isCorrection = is("ChargeClass", "Correction");
const isUsage = is("ChargeCategory", "Usage");
const isSold = all(is("ChargeCategory", "Usage", "Purchase"), not(isCorrection));

/** Of the column that an id begins with. */
const OF_COLUMN: readonly (readonly [of: (column: string) => Check, ids: string])[] = [
  [
    string,
    `
      InvoiceIssuerName-C-001-M ProviderName-C-001-M BillingAccountId-C-002-M
      BillingAccountName-C-001-M ChargeCategory-C-001-M PublisherName-C-001-M
      ServiceCategory-C-001-M SkuMeter-C-001-M ResourceId-C-001-M ChargeDescription-C-001-M
      SkuPriceId-C-001-M InvoiceId-C-001-M ConsumedUnit-C-001-M ChargeFrequency-C-001-M
      SkuId-C-001-M ResourceType-C-001-M PricingCategory-C-001-M PricingCurrency-C-001-M
      ServiceName-C-001-M PricingUnit-C-001-M BillingCurrency-C-001-M
      ServiceSubcategory-C-001-M ChargeClass-C-001-M SubAccountName-C-001-M
      CommitmentDiscountStatus-C-001-M
      ResourceName-C-001-M SubAccountId-C-001-M InvoiceIssuerName-C-002-M ProviderName-C-002-M
      BillingAccountId-C-003-M BillingAccountName-C-002-M PublisherName-C-002-M
      SkuMeter-C-002-M ResourceId-C-002-M ChargeDescription-C-002-M SkuPriceId-C-002-M
      InvoiceId-C-002-M ConsumedUnit-C-002-M SkuId-C-002-M ResourceType-C-002-M
      PricingCurrency-C-002-M ServiceName-C-002-M PricingUnit-C-002-M BillingCurrency-C-002-M
      SubAccountName-C-002-M ResourceName-C-002-M SubAccountId-C-002-M`,
  ],
  [
    given,
    `
      InvoiceIssuerName-C-003-M ProviderName-C-003-M BillingAccountId-C-001-M
      BillingAccountName-C-003-C BillingPeriodStart-C-003-M ChargeCategory-C-002-M
      PublisherName-C-003-M ServiceCategory-C-002-M ChargePeriodStart-C-003-M
      ChargeDescription-C-003-O ChargeFrequency-C-002-M PricingCurrency-C-004-M
      PricingCurrencyEffectiveCost-C-003-M BillingPeriodEnd-C-003-M ServiceName-C-003-M
      BillingCurrency-C-004-M ServiceSubcategory-C-002-M EffectiveCost-C-003-M
      EffectiveCost-C-004-M BilledCost-C-003-M ChargePeriodEnd-C-003-M ContractedCost-C-003-M
      ContractedCost-C-004-M ListCost-C-003-M ListCost-C-004-M
      PricingQuantity-C-008-M`,
  ],
  [
    number,
    `
      ListUnitPrice-C-001-M PricingQuantity-C-001-M PricingCurrencyListUnitPrice-C-001-M
      ConsumedQuantity-C-001-M PricingCurrencyContractedUnitPrice-C-001-M
      PricingCurrencyEffectiveCost-C-001-M EffectiveCost-C-001-M BilledCost-C-001-M
      BilledCost-C-004-M ContractedUnitPrice-C-002-M ContractedCost-C-001-M ListCost-C-001-M
      ListUnitPrice-C-002-M PricingQuantity-C-002-M PricingCurrencyListUnitPrice-C-002-M
      ConsumedQuantity-C-002-M PricingCurrencyContractedUnitPrice-C-002-M
      PricingCurrencyEffectiveCost-C-002-M EffectiveCost-C-002-M BilledCost-C-002-M
      ContractedUnitPrice-C-003-M ContractedCost-C-002-M ListCost-C-002-M`,
  ],
  [
    instant,
    `
      BillingPeriodStart-C-001-M ChargePeriodStart-C-001-M BillingPeriodEnd-C-001-M
      ChargePeriodEnd-C-001-M BillingPeriodStart-C-002-M ChargePeriodStart-C-002-M
      BillingPeriodEnd-C-002-M ChargePeriodEnd-C-002-M`,
  ],
  [
    notBelowZero,
    `
      ListUnitPrice-C-008-M PricingCurrencyListUnitPrice-C-008-M`,
  ],
  [
    unit,
    `
      ConsumedUnit-C-003-O PricingUnit-C-003-O`,
  ],
  [
    keyValue,
    `
      SkuPriceDetails-C-001-M`,
  ],
  [
    currency,
    `
      BillingCurrency-C-003-M BillingCurrency-C-006-M`,
  ],
  [
    (column) => when(isSold, given(column)),
    `
      ListUnitPrice-C-005-C PricingQuantity-C-005-C SkuPriceId-C-005-C
      PricingCurrencyListUnitPrice-C-005-C SkuId-C-005-C PricingCategory-C-004-C
      ContractedUnitPrice-C-006-C`,
  ],
  [
    (column) => when(is("ChargeCategory", "Tax"), none(column)),
    `
      ListUnitPrice-C-004-C PricingQuantity-C-004-C SkuPriceId-C-004-C
      PricingCurrencyListUnitPrice-C-004-C SkuId-C-004-C PricingCategory-C-003-C
      ContractedUnitPrice-C-005-C`,
  ],
];

const PRESENT = `
  CostAndUsage-D-004-C:ListUnitPrice CostAndUsage-D-005-M:BillingAccountName
  CostAndUsage-D-006-M:BilledCost CostAndUsage-D-008-M:ChargeCategory
  CostAndUsage-D-009-M:BillingPeriodStart CostAndUsage-D-010-M:BillingPeriodEnd
  CostAndUsage-D-011-C:ConsumedQuantity CostAndUsage-D-017-C:CommitmentDiscountStatus
  CostAndUsage-D-019-C:SubAccountId
  CostAndUsage-D-021-M:PublisherName CostAndUsage-D-022-C:PricingCategory
  CostAndUsage-D-023-M:InvoiceIssuerName CostAndUsage-D-024-M:BillingAccountId
  CostAndUsage-D-025-M:ChargeDescription CostAndUsage-D-026-M:ChargeClass
  CostAndUsage-D-027-O:ChargeFrequency CostAndUsage-D-028-M:ChargePeriodEnd
  CostAndUsage-D-029-C:SubAccountName CostAndUsage-D-030-M:ContractedCost
  CostAndUsage-D-031-M:EffectiveCost CostAndUsage-D-032-M:ListCost
  CostAndUsage-D-033-O:InvoiceId CostAndUsage-D-034-C:ContractedUnitPrice
  CostAndUsage-D-035-M:BillingCurrency CostAndUsage-D-036-M:PricingQuantity
  CostAndUsage-D-037-M:ChargePeriodStart CostAndUsage-D-038-M:ProviderName
  CostAndUsage-D-039-C:ResourceType CostAndUsage-D-040-M:ServiceCategory
  CostAndUsage-D-041-M:ServiceName CostAndUsage-D-042-O:ServiceSubcategory
  CostAndUsage-D-043-C:ResourceId CostAndUsage-D-044-C:ResourceName
  CostAndUsage-D-045-C:PricingCurrency CostAndUsage-D-047-C:PricingCurrencyContractedUnitPrice
  CostAndUsage-D-048-C:PricingCurrencyContractedUnitPrice
  CostAndUsage-D-051-C:PricingCurrencyEffectiveCost
  CostAndUsage-D-052-C:PricingCurrencyEffectiveCost
  CostAndUsage-D-055-C:PricingCurrencyListUnitPrice
  CostAndUsage-D-056-C:PricingCurrencyListUnitPrice CostAndUsage-D-058-C:SkuPriceId
  CostAndUsage-D-059-C:SkuMeter CostAndUsage-D-060-C:SkuId CostAndUsage-D-061-C:SkuPriceDetails
  CostAndUsage-D-066-C:ConsumedUnit CostAndUsage-D-068-M:PricingUnit`;

/** Unit price, quantity and cost, save for corrections. */
function priced(unitPrice: string, cost: string): Check {
  const isPriced = all(given(unitPrice), given("PricingQuantity"), not(isCorrection));
  return when(isPriced, product(unitPrice, "PricingQuantity", cost));
}

/** Both or neither. */
function together(a: string, b: string): { without: Check; with: Check } {
  return { without: when(none(a), none(b)), with: when(given(a), given(b)) };
}

const OTHERS: Readonly<Record<string, Check>> = {
  "BilledCost-C-005-C": when(not(same("ProviderName", "InvoiceIssuerName")), zero("BilledCost")),
  "ChargeCategory-C-003-M": is("ChargeCategory", "Usage", "Purchase", "Credit", "Adjustment"),
  "ChargeClass-C-005-C": when(given("ChargeClass"), isCorrection),
  "ChargeFrequency-C-003-M": is("ChargeFrequency", "One-Time", "Recurring", "Usage-Based"),
  "ChargeFrequency-C-004-C": when(
    is("ChargeCategory", "Purchase"),
    not(is("ChargeFrequency", "Usage-Based")),
  ),
  // There is no CommitmentDiscountId.
  "CommitmentDiscountStatus-C-003-C": none("CommitmentDiscountStatus"),
  // As its text says: the condition that the model has for it is the contrary.
  "CommitmentDiscountStatus-C-004-C": when(
    all(given("CommitmentDiscountId"), isUsage),
    given("CommitmentDiscountStatus"),
  ),
  "CommitmentDiscountStatus-C-005-M": when(
    given("CommitmentDiscountStatus"),
    is("CommitmentDiscountStatus", "Active", "Expired", "Pending"),
  ),
  "ConsumedQuantity-C-004-C": when(not(isUsage), none("ConsumedQuantity")),
  // As its text says: the condition that the model has for it is the contrary.
  "ConsumedQuantity-C-006-C": when(all(isUsage, not(isCorrection)), given("ConsumedQuantity")),
  "ConsumedUnit-C-005-C": together("ConsumedQuantity", "ConsumedUnit").without,
  "ConsumedUnit-C-006-C": together("ConsumedQuantity", "ConsumedUnit").with,
  "ContractedUnitPrice-C-009-C": notBelowZero("ContractedUnitPrice"),
  "ContractedUnitPrice-C-011-C": priced("ContractedUnitPrice", "ContractedCost"),
  "EffectiveCost-C-005-C": when(is("ChargeCategory", "Purchase"), zero("EffectiveCost")),
  "InvoiceId-C-004-C": none("InvoiceId"),
  "ListCost-C-009-C": priced("ListUnitPrice", "ListCost"),
  "ListUnitPrice-C-010-C": priced("ListUnitPrice", "ListCost"),
  "PricingCategory-C-007-M": is("PricingCategory", "Standard", "Committed", "Dynamic", "Other"),
  "PricingCurrency-C-003-M": string("PricingCurrency"),
  "PricingCurrencyEffectiveCost-C-004-M": notBelowZero("PricingCurrencyListUnitPrice"),
  "PricingUnit-C-005-C": together("PricingQuantity", "PricingUnit").without,
  "PricingUnit-C-006-C": together("PricingQuantity", "PricingUnit").with,
  "ResourceType-C-004-C": together("ResourceId", "ResourceType").without,
  "ResourceType-C-005-C": together("ResourceId", "ResourceType").with,
  "ServiceCategory-C-003-M": is("ServiceCategory", "Developer Tools"),
  "ServiceName-C-005-C": one("ServiceName", "ServiceCategory"),
  "ServiceName-C-008-C": one("ServiceName", "ServiceSubcategory"),
  "ServiceSubcategory-C-003-M": is("ServiceSubcategory", "Continuous Integration and Deployment"),
  "ServiceSubcategory-C-004-M": when(
    is("ServiceSubcategory", "Continuous Integration and Deployment"),
    is("ServiceCategory", "Developer Tools"),
  ),
  "SkuMeter-C-004-C": together("SkuId", "SkuMeter").without,
  "SkuMeter-C-005-C": together("SkuId", "SkuMeter").with,
  "SkuPriceDetails-C-004-C": when(none("SkuPriceId"), none("SkuPriceDetails")),
  "SkuPriceId-C-008-M": one("SkuPriceId", "SkuId"),
  "SubAccountName-C-004-C": together("SubAccountId", "SubAccountName").without,
  "SubAccountName-C-005-C": together("SubAccountId", "SubAccountName").with,
};

/** By id. */
export const RULES: ReadonlyMap<string, Check> = new Map([
  ...OF_COLUMN.flatMap(([of, ids]) => {
    return wordsOf(ids).map((id) => [id, of(id.split("-")[0] ?? "")] as const);
  }),
  ...wordsOf(PRESENT).map((word) => {
    const [id = "", column = ""] = word.split(":");
    return [id, present(column)] as const;
  }),
  ...Object.entries(OTHERS),
]);

/** Rows that break it. */
export function breaking(check: Check, sheet: Sheet): Cells[] {
  return sheet.rows.filter((row) => !check(row, sheet));
}

function wordsOf(text: string): string[] {
  return text.trim().split(/\s+/);
}
