/**
 * What a charge costs. Each cost is the quantity that is shown times a unit price, exactly, so that no row is
 * rounded: what an invoice rounds is whose invoice it is.
 */
import { scaled } from "../../core/export/totals.ts";
import { ANY_RUNNER, PACK, PRICE_PLACES, type Prices, runnerSku } from "../../core/price.ts";
import type { Charge } from "./charge.ts";
import { COST_PLACES } from "./columns.ts";

/** In units of 10⁻¹⁰ of the currency for one compute minute. */
interface Units {
  list: bigint;
  contracted: bigint;
  /** What of it is invoiced, and what it comes to once packs are spread over what was drawn from them. */
  billed: bigint;
  effective: bigint;
}

/**
 * Cells by column. Minutes of a pack are billed when they are bought, and cost what they were bought for when they
 * are used; what nobody is charged for costs nothing, at whatever it is listed.
 *
 * @param quantity of compute minutes, in units of 10⁻⁶
 * @throws Problem `no-price`
 */
export function costs(prices: Prices, charge: Charge, quantity: bigint): Record<string, string> {
  const units = unitsOf(prices, charge);
  const priced = pricedIn(prices, units);
  const { currency, host_provider, invoice_issuer, provider } = prices.list;
  const issuer = invoice_issuer ?? provider;
  // Of the specification: who is not paid for a charge bills nothing, so that nothing is counted twice.
  const billed = issuer === provider ? units.billed : 0n;
  const cost = (unit: bigint) => scaled(quantity * unit, COST_PLACES);
  return {
    BilledCost: cost(billed),
    BillingCurrency: currency,
    ContractedCost: cost(units.contracted),
    ContractedUnitPrice: scaled(units.contracted, PRICE_PLACES),
    EffectiveCost: cost(units.effective),
    HostProviderName: host_provider ?? provider,
    InvoiceIssuerName: issuer,
    ListCost: cost(units.list),
    ListUnitPrice: scaled(units.list, PRICE_PLACES),
    PricingCategory: "Standard",
    PricingCurrency: priced.name,
    PricingCurrencyContractedUnitPrice: scaled(priced.contracted, PRICE_PLACES),
    PricingCurrencyEffectiveCost: cost(priced.effective),
    PricingCurrencyListUnitPrice: scaled(priced.list, PRICE_PLACES),
    ProviderName: provider,
    PublisherName: provider,
    ServiceProviderName: provider,
  };
}

/** In credits a minute is always as many: what differs is whether it costs any, and what a credit costs in money. */
function pricedIn({ list: { currency }, virtual }: Prices, units: Units) {
  if (virtual === undefined) return { ...units, name: currency };
  const { name, unit } = virtual;
  const inCredits = (price: bigint) => (price === 0n ? 0n : unit);
  const { contracted, effective, list } = units;
  return {
    name,
    contracted: inCredits(contracted),
    effective: inCredits(effective),
    list: inCredits(list),
  };
}

/** A day that a price holds on: of a whole month, its first. */
function unitsOf(prices: Prices, charge: Charge): Units {
  const { machine_type, pack, portion, tracking, usage_month } = charge;
  const account = charge.account_id ?? "";
  const day = charge.day ?? usage_month;
  const sku = machine_type === null ? ANY_RUNNER : runnerSku(machine_type);
  const ofPack = () => {
    if (pack === undefined || pack.isGranted) return 0n;
    return prices.contracted(PACK, pack.purchased_in, account);
  };
  const list = () => (tracking === "hosted" ? prices.listed(sku, day) : 0n);
  switch (portion) {
    case "included":
    case "absorbed":
    case "not_billable":
    case "discount":
      return { list: list(), contracted: 0n, billed: 0n, effective: 0n };
    case "overage": {
      const contracted = prices.contracted(sku, day, account);
      return { list: list(), contracted, billed: contracted, effective: contracted };
    }
    case "pack":
      return { list: list(), contracted: ofPack(), billed: 0n, effective: ofPack() };
    case "purchase":
    case "grant": {
      const contracted = ofPack();
      const listed = prices.listed(PACK, pack?.purchased_in ?? day);
      return { list: listed, contracted, billed: contracted, effective: 0n };
    }
  }
}
