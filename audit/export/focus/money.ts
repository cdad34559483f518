/** What a charge costs, by a price list: the table of docs/focus.md, "Rows". */
import { writeDecimal } from "../../tally/record.ts";
import type { Charge } from "./charges.ts";
import { COST_PLACES, PRICE_PLACES } from "./columns.ts";
import type { Priced } from "./price-list.ts";

/** In 10⁻¹⁰ for a compute minute. */
interface Units {
  list: bigint;
  contracted: bigint;
  effective: bigint;
  billed: bigint;
}

type Cells = Record<string, string | null>;

/** @param quantity in 10⁻⁶ compute minutes @throws Unmade where there is no price */
export function moneyOf(priced: Priced, charge: Charge, quantity: bigint): Cells {
  const { currency, host_provider, invoice_issuer, provider } = priced.list;
  const units = unitsOf(priced, charge);
  const issuer = invoice_issuer ?? provider;
  const { credit } = priced;
  const inCredits = (unit: bigint): bigint => (unit === 0n ? 0n : (credit?.unit ?? unit));
  const price = (unit: bigint): string => writeDecimal(unit, PRICE_PLACES);
  const cost = (unit: bigint): string => writeDecimal(quantity * unit, COST_PLACES);
  return {
    BilledCost: cost(issuer === provider ? units.billed : 0n),
    BillingAccountName: priced.accountName(charge.account),
    BillingCurrency: currency,
    ContractedCost: cost(units.contracted),
    ContractedUnitPrice: price(units.contracted),
    EffectiveCost: cost(units.effective),
    HostProviderName: host_provider ?? provider,
    InvoiceIssuerName: issuer,
    ListCost: cost(units.list),
    ListUnitPrice: price(units.list),
    PricingCurrency: credit?.name ?? currency,
    PricingCurrencyContractedUnitPrice: price(inCredits(units.contracted)),
    PricingCurrencyEffectiveCost: cost(inCredits(units.effective)),
    PricingCurrencyListUnitPrice: price(inCredits(units.list)),
    ProviderName: provider,
    PublisherName: provider,
    ServiceProviderName: provider,
  };
}

function unitsOf(priced: Priced, charge: Charge): Units {
  const { account, day, machine, pack, portion, tracking, usage_month } = charge;
  if (portion === "purchase" || portion === "grant") {
    const list = priced.listed("pack", pack?.purchased_in ?? "");
    const paid = packPrice(priced, charge);
    return { list, contracted: paid, effective: 0n, billed: paid };
  }
  const sku = `runner/${machine || "*"}`;
  const on = day || usage_month;
  const list = tracking === "hosted" ? priced.listed(sku, on) : 0n;
  if (portion === "overage") {
    const paid = priced.contracted(sku, on, account);
    return { list, contracted: paid, effective: paid, billed: paid };
  }
  // Of a pack it was billed when that was bought; of all else nobody is charged.
  const paid = portion === "pack" ? packPrice(priced, charge) : 0n;
  return { list, contracted: paid, effective: paid, billed: 0n };
}

function packPrice(priced: Priced, { account, pack }: Charge): bigint {
  if (pack === undefined || pack.granted) return 0n;
  return priced.contracted("pack", pack.purchased_in, account);
}
