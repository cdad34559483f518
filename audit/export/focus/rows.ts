/** The rows of a FOCUS file, made again from the log, and from the price list if there is one. */
import type { Cell, Row } from "../../../src/core/export/tables.ts";
import { monthAfter } from "../../rating.ts";
import { dayNumber, dayOfNumber, writeDecimal, writeMicro } from "../../tally/record.ts";
import type { Book } from "../book.ts";
import { type Charge, chargesOf, PackBook, type Portion } from "./charges.ts";
import { CONSUMED_PLACES, QUANTITY_PLACES } from "./columns.ts";
import { moneyOf } from "./money.ts";
import type { Priced } from "./price-list.ts";
import { Unmade } from "./unmade.ts";

export interface About {
  /** In the order of the file. */
  columns: readonly string[];
  /** Billing month. */
  month: string;
  /** `unique_id` of the instance. */
  instance: string;
  withMoney: boolean;
  /** Undefined: cells that are a price list's stay empty. */
  priced: Priced | undefined;
}

const DESCRIBED: Readonly<Record<Portion, string>> = {
  included: "included in the plan",
  pack: "drawn from a pack",
  overage: "beyond plan and packs",
  absorbed: "beyond a limit, within its grace: not charged",
  not_billable: "not billable",
  discount: "discounted",
  purchase: "Pack of compute minutes",
  grant: "Compute minutes granted",
};
/** Of a quantity's last digit, in 10⁻⁶ compute-milliseconds: a millionth of a minute. */
const LAST_DIGIT = 60_000n;

/** In their order. @throws Unmade */
export function* focusRows(book: Book, about: About): Generator<Row> {
  const quantities = new Quantities();
  for (const charge of chargesIn(book, about.month)) {
    if (about.withMoney && charge.account === "") {
      if (isOwed(charge)) throw new Unmade(`no account pays for namespace ${charge.namespace}`);
      continue;
    }
    const quantity = quantities.next(charge);
    // Not spread into one object: of sixty members it takes six times as long as looking each up in these.
    const told: readonly Readonly<Record<string, Cell>>[] = [
      whatOf(charge),
      whoseOf(charge, about.instance),
      whenOf(charge, about.month),
      { PricingQuantity: writeDecimal(quantity, QUANTITY_PLACES) },
      about.priced === undefined ? {} : moneyOf(about.priced, charge, quantity),
    ];
    yield about.columns.map((name) => told.find((cells) => name in cells)?.[name] || null);
  }
}

function* chargesIn(book: Book, month: string): Generator<Charge> {
  const packs = new PackBook(month);
  const lines = book.rows("portal", month, {
    tell: (...share) => packs.take(...share),
    apart: true,
  });
  let [namespace, draw] = ["", packs.drawing("")];
  for (const row of lines) {
    const [, , of] = row;
    if (of !== namespace) [namespace, draw] = [of ?? "", packs.drawing(of ?? "")];
    yield* chargesOf(row, month, draw);
  }
  yield* packs.sold;
}

/** What nobody owes may have nobody to pay for it. */
function isOwed({ portion }: Charge): boolean {
  return portion !== "not_billable" && portion !== "discount";
}

/** What the rounded sum of one account, subscription and portion has grown by, row after row. */
class Quantities {
  /** Of lines, in which no account comes twice. */
  #sums = new Map<string, bigint>();
  /** Of packs, in which it does. */
  readonly #sold = new Map<string, bigint>();
  #whose = "";

  /** In 10⁻⁶ compute minutes. */
  next({ account, amount, portion, subscription }: Charge): bigint {
    const whose = JSON.stringify([account, subscription]);
    if (whose !== this.#whose) this.#sums = new Map();
    this.#whose = whose;
    const sums = portion === "purchase" || portion === "grant" ? this.#sold : this.#sums;
    const key = `${whose}${portion}`;
    const before = sums.get(key) ?? 0n;
    sums.set(key, before + amount);
    return rounded(before + amount) - rounded(before);
  }
}

/** Half away from zero. */
function rounded(amount: bigint): bigint {
  return (amount + (amount < 0n ? -LAST_DIGIT : LAST_DIGIT) / 2n) / LAST_DIGIT;
}

function whatOf(charge: Charge): Record<string, Cell> {
  const { amount, category, consumed, correction, pack, portion, tracking, usage_month } = charge;
  const sku = skuOf(charge);
  return {
    ChargeCategory: category,
    ChargeClass: correction ? "Correction" : null,
    ChargeDescription: describe(charge),
    ChargeFrequency: category === "Usage" ? "Usage-Based" : "One-Time",
    ConsumedQuantity: consumed === undefined ? null : writeDecimal(consumed, CONSUMED_PLACES),
    ConsumedUnit: consumed === undefined ? null : "Seconds",
    PricingCategory: "Standard",
    PricingUnit: "Compute Minutes",
    ServiceCategory: "Developer Tools",
    ServiceName: tracking === "hosted" ? "Hosted Runners" : "Self-Managed Runners",
    ServiceSubcategory: "Continuous Integration and Deployment",
    ...(sku !== "" && {
      SkuId: sku,
      SkuMeter: "Compute Minutes",
      SkuPriceDetails: JSON.stringify({ x_Portion: portion }),
      SkuPriceId: `${sku}/${portion}`,
    }),
    x_ComputeMs: writeMicro(amount),
    x_NotConformant: "no price list: quantities without cost",
    x_Pack: pack?.index ?? null,
    x_Portion: portion,
    x_Tracking: tracking,
    x_UsageMonth: usage_month,
  };
}

function skuOf({ machine, portion, tracking }: Charge): string {
  if (portion === "purchase" || portion === "grant") return "pack";
  if (machine === "") return "";
  return `${tracking === "hosted" ? "runner" : "self_managed"}/${machine}`;
}

function describe({ category, machine, portion }: Charge): string {
  const how = DESCRIBED[portion];
  if (portion === "purchase" || portion === "grant") return how;
  const on = machine === "" ? "" : ` on ${machine}`;
  return `Compute minutes${on}${category === "Usage" ? "" : ", adjusted"}, ${how}`;
}

function whoseOf(charge: Charge, instance: string): Record<string, Cell> {
  const { account, namespace, project, subscription } = charge;
  return {
    BillingAccountId: account,
    ...(project !== "" && {
      ResourceId: `${instance}/projects/${project}`,
      ResourceType: "Project",
    }),
    SubAccountId: `${instance}/namespaces/${namespace}`,
    SubAccountName: `Namespace ${namespace}`,
    x_NamespaceId: namespace,
    x_ProjectId: project,
    x_SubscriptionId: subscription,
  };
}

/** Half-open, in whole seconds. */
function whenOf({ day, usage_month }: Charge, month: string): Record<string, Cell> {
  const after = day === "" ? monthAfter(usage_month) : dayOfNumber(dayNumber(day) + 1);
  return {
    BillingPeriodEnd: `${monthAfter(month)}T00:00:00Z`,
    BillingPeriodStart: `${month}T00:00:00Z`,
    ChargePeriodEnd: `${after}T00:00:00Z`,
    ChargePeriodStart: `${day || usage_month}T00:00:00Z`,
  };
}
