/**
 * A month counted from the entries' bytes alone, in whole numbers of 10⁻⁶ compute-milliseconds: nothing of the
 * product but the JSON that it wrote.
 */

/** Of a namespace, for every month; its pack is good for one. */
export interface Terms {
  minutes: number;
  beyond: "bill" | "stop";
  pack?: { month: string; minutes: number };
}

const MICRO = 1_000_000n;
const MINUTE = 60_000n * MICRO;

interface Written {
  index: string;
  kind: string;
  body: {
    jws: string;
    factor: string;
    compute_ms: string;
    billing_month: string;
    usage_month: string;
    lines: { namespace_id: string; usage_month: string; amount: string }[];
  };
}

export interface Counted {
  jobs: bigint;
  duration: bigint;
  charged: bigint;
  adjusted: bigint;
}

/** What is posted to a month before an index, by `<namespace> <usage month>`. */
export function countedAt(
  stored: readonly Uint8Array[],
  month: string,
  below: bigint,
): Map<string, Counted> {
  const counted = new Map<string, Counted>();
  const row = (namespace: string, usageMonth: string): Counted => {
    const name = `${namespace} ${usageMonth}`;
    const found = counted.get(name) ?? { jobs: 0n, duration: 0n, charged: 0n, adjusted: 0n };
    counted.set(name, found);
    return found;
  };
  for (const bytes of stored.slice(0, Number(below))) {
    const { body, kind }: Written = JSON.parse(Buffer.from(bytes).toString("utf8"));
    if (body.billing_month !== month) continue;
    if (kind === "usage") {
      const { job, usage } = payloadOf(body.jws);
      const sum = row(job.root_namespace_id, `${usage.finished_at.slice(0, 7)}-01`);
      sum.jobs += 1n;
      sum.duration += BigInt(usage.duration_ms);
      sum.charged += charged(BigInt(usage.duration_ms), body.factor);
    }
    for (const line of kind === "adjustment" ? body.lines : []) {
      row(line.namespace_id, line.usage_month).adjusted += microOf(line.amount);
    }
  }
  return counted;
}

/** As a namespace's line of a month has it: what of `sum` is included, drawn, overage or absorbed. */
export interface Allocated {
  included: bigint;
  packs: bigint;
  overage: bigint;
  absorbed: bigint;
}

/** What a usage month's terms make of all that it has come to. */
export function allocated({ beyond, minutes, pack }: Terms, month: string, sum: bigint): Allocated {
  const limit = BigInt(minutes) * MINUTE;
  const included = least(sum, limit);
  const bought = pack?.month === month ? BigInt(pack.minutes) * MINUTE : 0n;
  const packs = least(sum - included, bought);
  const rest = sum - included - packs;
  return { included, packs, ...split(beyond, rest) };
}

/** What came late, of a month that is closed: packs that were drawn for it stay as they were. */
export function grown(terms: Terms, month: string, before: bigint, late: bigint): Allocated {
  const { packs } = allocated(terms, month, before);
  const limit = BigInt(terms.minutes) * MINUTE;
  const [from, to] = [before - packs, before + late - packs];
  const included = least(to, limit) - least(from, limit);
  return { included, packs: 0n, ...split(terms.beyond, late - included) };
}

function split(beyond: Terms["beyond"], rest: bigint): Pick<Allocated, "overage" | "absorbed"> {
  return beyond === "bill" ? { overage: rest, absorbed: 0n } : { overage: 0n, absorbed: rest };
}

/** As amounts are written: six decimals of a compute-millisecond. */
export function microOf(text: string): bigint {
  return BigInt(text.replace(".", ""));
}

export function textOf(micro: bigint): string {
  const digits = String(micro < 0n ? -micro : micro).padStart(7, "0");
  return `${micro < 0n ? "-" : ""}${digits.slice(0, -6)}.${digits.slice(-6)}`;
}

/** Duration × factor in 10⁻⁶ ms, halves to the even digit. */
function charged(duration: bigint, factor: string): bigint {
  const [top = 0n, bottom = 1n] = factor.split("/").map(BigInt);
  const exact = duration * top * MICRO;
  const [whole, left] = [exact / bottom, 2n * (exact % bottom)];
  return left > bottom || (left === bottom && whole % 2n === 1n) ? whole + 1n : whole;
}

function payloadOf(jws: string): {
  job: { root_namespace_id: string };
  usage: { duration_ms: string; finished_at: string };
} {
  return JSON.parse(Buffer.from(jws.split(".")[1] ?? "", "base64url").toString("utf8"));
}

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
