/** What a ledger's entries come to by project, machine type and day: one by one, in plain fractions. */
import { parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { Body, Entry, EntryOf } from "../../../src/core/entry.ts";
import type { TestLedger } from "../../ledger.ts";
import { reportIn } from "../door.ts";

/** Where entries before `asOf` cut the month off, or would now. */
export function cutOff({ written }: TestLedger, month: string, asOf: bigint): bigint {
  const standing: EntryOf<"month_closing">[] = [];
  for (const { entry } of written.slice(0, Number(asOf))) {
    if (entry.kind === "month_closing") standing.push(entry);
    else if (entry.kind === "month_closing_withdrawn") standing.pop();
  }
  return standing.find(({ body }) => body.month === month)?.index ?? asOf;
}

interface Part {
  key: string[];
  figures: Record<"jobs" | "duration_ms" | "gross" | "charged" | "billable" | "adjustment", bigint>;
}

/** One for each usage and each line of an adjustment that is posted to the month. */
export function partsOf({ written }: TestLedger, month: string, below: bigint): Part[] {
  const entries = written.slice(0, Number(below)).map(({ entry }) => entry);
  return entries.flatMap((entry) => {
    if (entry.kind === "usage" && entry.body.billing_month === month)
      return usagePart(entries, entry);
    if (entry.kind !== "adjustment" || entry.body.billing_month !== month) return [];
    return entry.body.lines.map((line) => {
      const about = line.entry === "" ? undefined : entries[Number(line.entry)];
      const { machine_type = "" } = about?.kind === "usage" ? about.body : {};
      const day = about?.kind === "usage" ? dayOf(about.body) : "";
      const key = [line.namespace_id, line.usage_month, day, line.project_id || "0", machine_type];
      const none = { jobs: 0n, duration_ms: 0n, gross: 0n, charged: 0n, billable: 0n };
      return {
        key: [...key, "hosted"],
        figures: { ...none, adjustment: parseSignedComputeMs(line.amount) },
      };
    });
  });
}

function usagePart(entries: readonly Entry[], { body }: EntryOf<"usage">): Part {
  const { job, usage } = reportIn(body.jws);
  const card = entries[Number(body.card)];
  if (card?.kind !== "rate_card") throw new Error("no card");
  const { runner_factors: rates } = card.body;
  const text = rates[body.machine_type] ?? rates["*"] ?? "";
  const [n = 0n, d = 1n] = text.split("/").map(BigInt);
  const charged = parseSignedComputeMs(body.compute_ms);
  const key = [job.root_namespace_id, body.usage_month, dayOf(body), job.project_id];
  return {
    key: [...key, body.machine_type, body.tracking],
    figures: {
      jobs: 1n,
      duration_ms: BigInt(usage.duration_ms),
      gross: nearest(BigInt(usage.duration_ms) * n * 1_000_000n, d),
      charged,
      billable: body.billable ? charged : 0n,
      adjustment: 0n,
    },
  };
}

function dayOf({ jws }: Body<"usage">): string {
  return reportIn(jws).usage.finished_at.slice(0, 10);
}

/** The whole number nearest to n/d; of two the even one. */
function nearest(n: bigint, d: bigint): bigint {
  const around = [n / d, n / d + 1n];
  const distance = (at: bigint): bigint => (n > at * d ? n - at * d : at * d - n);
  const [low = 0n, high = 0n] = around.map(distance);
  if (low === high) return around.find((at) => at % 2n === 0n) ?? 0n;
  return (low < high ? around[0] : around[1]) ?? 0n;
}

/** By key, in no order. */
export function summed(parts: readonly Part[]): Map<string, Part> {
  const sums = new Map<string, Part>();
  for (const { key, figures } of parts) {
    const before = sums.get(key.join("\n"))?.figures;
    const names = Object.keys(figures) as (keyof Part["figures"])[];
    const sum = names.map((name) => [name, figures[name] + (before?.[name] ?? 0n)]);
    sums.set(key.join("\n"), { key, figures: Object.fromEntries(sum) });
  }
  return sums;
}

/** By the entries before an index that begin before the month ends: all begin at once here. */
export function payerOf({ written }: TestLedger, namespace: string, below: bigint) {
  const accounts = written
    .slice(0, Number(below))
    .flatMap(({ entry }) => (entry.kind === "account" ? [entry.body] : []));
  const own = accounts.findLast(({ namespace_id }) => namespace_id === namespace);
  return own ?? accounts.findLast(({ namespace_id }) => namespace_id === "");
}
