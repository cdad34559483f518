/** What a FOCUS file's rows are about (docs/focus.md): of a line of the portal, and of what was sold of packs. */
import { type Row, TABLES } from "../../../src/core/export/tables.ts";
import { isOfRun } from "../../money/credit-run.ts";
import type { MonthShare, Terms } from "../../month/terms.ts";
import { micro } from "../../tally/record.ts";
import { dealer } from "../deal.ts";

/** Ways in which a line's minutes are paid for, or are not, in the order of its rows. */
const PAID_FOR = ["included", "pack", "overage", "absorbed", "not_billable", "discount"] as const;
type PaidFor = (typeof PAID_FOR)[number];
export type Portion = PaidFor | "purchase" | "grant";

export interface Pack {
  index: string;
  purchased_in: string;
  granted: boolean;
}

/** An empty text is none. */
export interface Charge {
  account: string;
  subscription: string;
  namespace: string;
  project: string;
  machine: string;
  tracking: string;
  usage_month: string;
  /** None: the whole of the month. */
  day: string;
  category: "Adjustment" | "Credit" | "Purchase" | "Usage";
  correction: boolean;
  portion: Portion;
  /** In 10⁻⁶ compute-milliseconds. */
  amount: bigint;
  /** In milliseconds; undefined where nothing ran. */
  consumed?: bigint;
  pack?: Pack;
}

type Part = Pick<Charge, "amount" | "pack" | "portion">;
/** What of an amount is drawn from which packs. */
export type Draw = (amount: bigint) => { amount: bigint; pack: Pack }[];

const AT = new Map(TABLES.portal.map(({ name }, at) => [name, at]));

/** @param row of `portal` @param month that it is billed in */
export function* chargesOf(row: Row, month: string, draw: Draw): Generator<Charge> {
  const cell = (name: string): string => row[AT.get(name) ?? -1] ?? "";
  const amountOf = (name: string): bigint => micro(cell(`${name}_compute_ms`));
  const ran = cell("jobs") !== "0";
  const usage_month = cell("usage_month");
  const correction = usage_month < month && amountOf("adjustment") !== 0n;
  const about = {
    ...{ account: cell("account_id"), subscription: cell("subscription_id") },
    ...{ namespace: cell("namespace_id"), machine: cell("machine_type"), usage_month },
    ...{ project: cell("project_id") === "0" ? "" : cell("project_id"), day: cell("day") },
    ...{ tracking: cell("tracking"), correction },
  };
  const parts = PAID_FOR.flatMap((portion): Part[] => {
    const amount = amountOf(portion);
    if (portion === "pack") return draw(amount).map((drawn) => ({ ...drawn, portion }));
    return amount === 0n ? [] : [{ portion, amount }];
  });
  // What ran is told, even if it came to nothing.
  if (parts.length === 0 && ran) {
    parts.push({ portion: about.tracking === "hosted" ? "included" : "not_billable", amount: 0n });
  }
  const durations = spread(BigInt(cell("duration_ms")), parts);
  for (const [at, part] of parts.entries()) {
    const kind = part.amount < 0n ? "Credit" : "Adjustment";
    const category = ran || correction ? "Usage" : kind;
    yield { ...about, ...part, category, ...(ran && { consumed: durations[at] ?? 0n }) };
  }
}

/** By what is above nothing in each, in whole milliseconds that add up; where nothing is, all in the first. */
function spread(duration: bigint, parts: readonly Part[]): bigint[] {
  const weights = parts.map(({ amount }) => (amount > 0n ? amount : 0n));
  const whole = weights.reduce((sum, weight) => sum + weight, 0n);
  const upTo = (at: number): bigint => {
    if (at === 0) return 0n;
    if (whole === 0n) return duration;
    return (duration * weights.slice(0, at).reduce((sum, weight) => sum + weight, 0n)) / whole;
  };
  return parts.map((_, at) => upTo(at + 1) - upTo(at));
}

/** Of all namespaces: packs that their months drew on, and what was bought, granted or given back. */
export class PackBook {
  readonly sold: Charge[] = [];
  readonly #draws = new Map<string, { drawn: bigint; pack: Pack }[]>();
  readonly #month: string;

  constructor(month: string) {
    this.#month = month;
  }

  take(namespace: string, { account, allocations, packs }: MonthShare, terms: Terms): void {
    const draws = allocations
      .flatMap((line) => line.packs)
      .map(({ drawn, pack }) => ({ drawn: micro(drawn), pack: packOf(pack, terms) }));
    if (draws.length > 0) this.#draws.set(namespace, draws);
    for (const { bought, pack: index, refunded } of packs) {
      const amount = micro(bought) - micro(refunded);
      const pack = packOf(index, terms);
      if (amount !== 0n) {
        this.sold.push({
          ...{ account: account?.account_id ?? "", subscription: account?.subscription_id ?? "" },
          ...{ namespace, project: "", machine: "", tracking: "hosted", day: "" },
          ...{ usage_month: this.#month, amount, pack },
          category: pack.granted ? "Credit" : "Purchase",
          correction: amount < 0n && pack.purchased_in < this.#month,
          portion: pack.granted ? "grant" : "purchase",
        });
      }
    }
  }

  /** For the lines of a namespace, one after the other. */
  drawing(namespace: string): Draw {
    const draws = this.#draws.get(namespace) ?? [];
    if (draws.length === 0) return () => [];
    const deal = dealer(draws.map(({ drawn }) => drawn));
    return (usage) => {
      const dealt = deal(usage);
      return draws
        .map(({ pack }, at) => ({ pack, amount: dealt[at] ?? 0n }))
        .filter(({ amount }) => amount !== 0n);
    };
  }
}

function packOf(index: string, terms: Terms): Pack {
  const version = terms.version(index);
  if (version === undefined) throw new Error("focus: no such pack");
  return { index, purchased_in: version.purchased_in, granted: isOfRun(version) };
}
