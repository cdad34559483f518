/** A namespace's facts by a naive count: entry by entry, from the bytes, over all of a log. */
import { decodeEntry, type Entry } from "../../../src/core/entry.ts";
import type { QuotaFacts } from "../../../src/core/quota/quota.ts";
import type { TestLedger } from "../../ledger.ts";
import { reportIn } from "../door.ts";

type Counted = QuotaFacts & { touched: bigint; jobs: { index: bigint; job: string }[] };

/** As of entries 0 … size−1; `jobs` are those of the namespace that have a hosted usage. */
export function countedOf(ledger: TestLedger, namespace: string, size = ledger.size): Counted {
  const entries = ledger.written.slice(0, Number(size)).map(({ bytes }) => {
    const entry = decodeEntry(bytes);
    if (typeof entry === "string") throw new Error(`oracle: an entry is ${entry}`);
    return entry;
  });
  const [genesis] = entries;
  if (genesis?.kind !== "log") throw new Error("oracle: no log");
  const counted = {
    platform: genesis.body.platform,
    limits: [] as QuotaFacts["limits"][number][],
    packs: [] as QuotaFacts["packs"][number][],
    closings: [] as QuotaFacts["closings"][number][],
    used: new Map<string, bigint>(),
    touched: -1n,
    jobs: [] as Counted["jobs"],
  };
  for (const entry of entries) {
    if (count(counted, entry, namespace)) counted.touched = entry.index;
  }
  return counted;
}

/** Whether the entry concerns the namespace. */
function count(
  counted: ReturnType<typeof countedOf> & {
    limits: object[];
    packs: object[];
    closings: object[];
    used: Map<string, bigint>;
  },
  { at, body, index, kind }: Entry,
  namespace: string,
): boolean {
  if (kind === "month_closing") {
    counted.closings.push({ index, month: body.month });
    return true;
  }
  if (kind === "month_closing_withdrawn") {
    counted.closings.pop();
    return true;
  }
  if (kind === "quota" && body.namespace_id === namespace) {
    counted.limits.push({
      index,
      at,
      effective_from: body.effective_from,
      monthly_minutes: BigInt(body.monthly_minutes),
      beyond: body.beyond,
      cap: body.cap === "" ? undefined : BigInt(body.cap),
      grace_minutes: BigInt(body.grace_minutes),
    });
    return true;
  }
  if (kind === "pack" && body.namespace_id === namespace) {
    counted.packs.push({
      index,
      pack: `${body.source}\n${body.pack_id}`,
      minutes: BigInt(body.minutes),
      purchased_in: body.purchased_in,
      expires_in: body.expires_in,
      source_version: BigInt(body.source_version),
    });
    return true;
  }
  if (kind === "adjustment") {
    const own = body.lines.filter(({ namespace_id }) => namespace_id === namespace);
    for (const { amount, usage_month } of own) {
      if (usage_month === body.billing_month) add(counted.used, usage_month, amount);
    }
    return own.length > 0;
  }
  if (kind !== "usage" || body.tracking !== "hosted") return false;
  const { job } = reportIn(body.jws);
  if (job.root_namespace_id !== namespace) return false;
  counted.jobs.push({ index, job: job.id });
  const { billing_month: month } = body;
  if (body.billable && body.usage_month === month) add(counted.used, month, body.compute_ms);
  return true;
}

function add(used: Map<string, bigint>, month: string, amount: string): void {
  used.set(month, (used.get(month) ?? 0n) + BigInt(amount.replace(".", "")));
}
