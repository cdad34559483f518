/** What a FOCUS file's rows are about (docs/focus.md), told of a row of it, and of what the log gives. */
import { type Row, TABLES } from "../../../src/core/export/tables.ts";
import type { Json } from "../../../src/core/json.ts";
import { isOfRun } from "../../money/credit-run.ts";
import type { MonthShare, Terms } from "../../month/terms.ts";
import { monthAfter } from "../../rating.ts";
import { dayNumber, dayOfNumber, micro } from "../../tally/record.ts";

export interface Charged {
  of: Json;
  amount: bigint;
}

export type CellOf = (column: string) => string;

/** Ways in which a line's minutes are paid for, or are not, in the columns of `portal`. */
const PORTIONS = ["included", "pack", "overage", "absorbed", "not_billable", "discount"] as const;
/** Nobody owes them: where there is money, they are left out for who has no account. */
const UNOWED: ReadonlySet<string> = new Set(["not_billable", "discount"]);

/** Of one row of the file: its line and portion; and of what packs were drawn for, or sold, the pack. */
export function chargedIn(cell: CellOf): Charged[] {
  const portion = cell("x_Portion");
  const amount = micro(cell("x_ComputeMs"));
  const who = [cell("BillingAccountId"), cell("x_SubscriptionId"), cell("x_NamespaceId")];
  if (portion === "purchase" || portion === "grant") {
    return [{ of: [portion, ...who, cell("x_Pack")], amount }];
  }
  const what = [cell("x_ProjectId"), cell("SkuId"), cell("x_Tracking"), cell("x_UsageMonth")];
  const period = [cell("ChargePeriodStart"), cell("ChargePeriodEnd")];
  const line = { of: [portion, ...who, ...what, ...period], amount };
  if (portion !== "pack") return [line];
  return [line, { of: ["drawn", cell("x_NamespaceId"), cell("x_Pack")], amount }];
}

const AT = new Map(TABLES.portal.map(({ name }, at) => [name, at]));

export function chargedInPortal(row: Row, withMoney: boolean): Charged[] {
  const cell = (name: string): string => row[AT.get(name) ?? -1] ?? "";
  const [month, day] = [cell("usage_month"), cell("day")];
  const end = day === "" ? monthAfter(month) : dayOfNumber(dayNumber(day) + 1);
  const machine = cell("machine_type");
  const kind = cell("tracking") === "hosted" ? "runner" : "self_managed";
  const who = [cell("account_id"), cell("subscription_id"), cell("namespace_id")];
  const what = [
    cell("project_id") === "0" ? "" : cell("project_id"),
    machine === "" ? "" : `${kind}/${machine}`,
    ...[cell("tracking"), month, `${day || month}T00:00:00Z`, `${end}T00:00:00Z`],
  ];
  return PORTIONS.flatMap((portion) => {
    if (withMoney && cell("account_id") === "" && UNOWED.has(portion)) return [];
    return [{ of: [portion, ...who, ...what], amount: micro(cell(`${portion}_compute_ms`)) }];
  });
}

/** What packs were drawn for, and which were bought, granted, or given back. */
export function chargedInShare(namespace: string, share: MonthShare, terms: Terms): Charged[] {
  const { account_id = "", subscription_id = "" } = share.account ?? {};
  const draws = share.allocations.flatMap(({ packs }) => packs);
  const drawn = draws.map(({ drawn, pack }) => {
    return { of: ["drawn", namespace, pack], amount: micro(drawn) };
  });
  const sold = share.packs.map(({ bought, pack, refunded }) => {
    const version = terms.version(pack);
    const portion = version !== undefined && isOfRun(version) ? "grant" : "purchase";
    const of = [portion, account_id, subscription_id, namespace, pack];
    return { of, amount: micro(bought) - micro(refunded) };
  });
  return [...drawn, ...sold];
}
