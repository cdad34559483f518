/**
 * Small histories of a namespace, and what is left by counting: a token is a quarter of a minute, and
 * every one that is used is taken from where it comes from, one after the other, month after month.
 */
import fc from "fast-check";
import { MINUTE } from "../../../src/core/charge.ts";
import type { LimitFact, PackFact, QuotaFacts } from "../../../src/core/quota/quota.ts";
import { type ComputeMs, computeMs, instantText, type Platform } from "../../../src/core/unit.ts";

/** As an entry says it; its index is its place in the list. */
export type Event =
  | LimitSaid
  | ({ kind: "pack" } & Omit<PackFact, "index">)
  | { kind: "usage"; tokens: number; usage_month: string; billing_month: string }
  | { kind: "closing"; month: string }
  | { kind: "withdrawal" };

type LimitSaid = { kind: "quota" } & Omit<LimitFact, "index">;

const TOKENS = 4;
export const TOKEN = MINUTE / BigInt(TOKENS);

const YEAR = 2026;
/** Months of the year by number, from 1. */
export const monthAt = (number: number): string => `${YEAR}-${String(number).padStart(2, "0")}-01`;

/** Packs that are drawn for several months, and made smaller meanwhile, are the rare ones. */
const KINDS = [
  ...["quota", "closing", "withdrawal"],
  ...Array<string>(3).fill("pack"),
  ...Array<string>(6).fill("usage"),
];

/** What a test makes up, before it is put into an order that a log could have. */
const Choice = fc.record({
  kind: fc.constantFrom(...KINDS),
  /** How far the log's clock goes on. */
  hours: fc.nat(300),
  minutes: fc.nat(2),
  bought: fc.constantFrom(0n, 1n, 2n, 5n, 10n),
  tokens: fc.nat(30),
  pack: fc.constantFrom("a", "b"),
  back: fc.nat(3),
  months: fc.nat(8),
  beyond: fc.constantFrom("stop" as const, "bill" as const),
  cap: fc.option(fc.bigInt({ min: 0n, max: 3n }), { nil: undefined }),
  grace: fc.bigInt({ min: 0n, max: 3n }),
  offset: fc.integer({ min: -1_000, max: 1_000 }),
  /** A limit that replaces another begins a millisecond after its entry. */
  sooner: fc.boolean(),
});
type Choice = typeof Choice extends fc.Arbitrary<infer T> ? T : never;

export const events = fc.array(Choice, { maxLength: 20, size: "max" }).map(history);
/** Of the months that the histories are about. */
export const instants = fc
  .integer({ min: Date.UTC(YEAR, 0), max: Date.UTC(YEAR, 11, 31) })
  .map(instantText);

function history(choices: readonly Choice[]): Event[] {
  const made: Event[] = [];
  let clock = Date.UTC(YEAR, 2);
  for (const choice of choices) {
    clock += choice.hours * 3_600_000;
    const event = eventOf(choice, clock, made);
    if (event !== undefined) made.push(event);
  }
  return made;
}

function eventOf(choice: Choice, clock: number, before: readonly Event[]): Event | undefined {
  const now = new Date(clock).getUTCMonth() + 1;
  const closed = closings(before).at(-1)?.month ?? "";
  switch (choice.kind) {
    case "quota":
      return {
        kind: "quota",
        at: instantText(clock),
        effective_from: instantText(clock + effectAfter(choice)),
        monthly_minutes: BigInt(choice.minutes),
        beyond: choice.beyond,
        cap: choice.beyond === "bill" ? choice.cap : undefined,
        grace_minutes: choice.grace,
      };
    case "pack": {
      const versions = before.flatMap((event) =>
        event.kind === "pack" && event.pack === choice.pack ? [event] : [],
      );
      const purchased_in = versions[0]?.purchased_in ?? monthAt(now - Math.min(choice.back, 2));
      return {
        kind: "pack",
        pack: choice.pack,
        minutes: choice.bought,
        purchased_in,
        expires_in: monthAt(Math.min(Number(purchased_in.slice(5, 7)) + choice.months, 12)),
        source_version: BigInt(versions.length),
      };
    }
    case "usage": {
      const usage_month = monthAt(Math.max(now - choice.back, 1));
      const open = closed === "" ? "" : monthAt(Number(closed.slice(5, 7)) + 1);
      const isLate = usage_month < open;
      const billing_month = isLate ? open : usage_month;
      return { kind: "usage", tokens: choice.tokens, usage_month, billing_month };
    }
    case "closing": {
      const month = closed === "" ? monthAt(now - 1) : monthAt(Number(closed.slice(5, 7)) + 1);
      return month < monthAt(now) ? { kind: "closing", month } : undefined;
    }
    default:
      return closed === "" ? undefined : { kind: "withdrawal" };
  }
}

function effectAfter({ offset, sooner }: Choice): number {
  return sooner ? Math.sign(offset) : offset * 3_600_000;
}

/** What stands of closings after these events. */
function closings(seen: readonly Event[]): { index: bigint; month: string }[] {
  const stands: { index: bigint; month: string }[] = [];
  seen.forEach((event, index) => {
    if (event.kind === "closing") stands.push({ index: BigInt(index), month: event.month });
    if (event.kind === "withdrawal") stands.pop();
  });
  return stands;
}

/** Facts as they are kept: taken in by pages, whose usage is summed up before it is added. */
export class Folded {
  readonly #events: Event[] = [];
  readonly #used = new Map<string, bigint>();

  take(page: readonly Event[]): void {
    const sums = new Map<string, bigint>();
    for (const event of page) {
      if (event.kind !== "usage" || event.usage_month !== event.billing_month) continue;
      const month = event.usage_month;
      sums.set(month, (sums.get(month) ?? 0n) + BigInt(event.tokens) * TOKEN);
    }
    for (const [month, sum] of sums) this.#used.set(month, (this.#used.get(month) ?? 0n) + sum);
    this.#events.push(...page);
  }

  facts(platform: Platform = "dotcom"): QuotaFacts {
    const limits: LimitFact[] = [];
    const packs: PackFact[] = [];
    this.#events.forEach((event, at) => {
      const { kind, ...said } = event;
      const fact = { ...said, index: BigInt(at) };
      if (kind === "quota") limits.push(fact as LimitFact);
      if (kind === "pack") packs.push(fact as PackFact);
    });
    const used = new Map<string, ComputeMs>();
    for (const [month, sum] of this.#used) used.set(month, computeMs(sum));
    return { platform, limits, packs, closings: closings(this.#events), used };
  }
}

export function factsOf(seen: readonly Event[], platform: Platform = "dotcom"): QuotaFacts {
  const folded = new Folded();
  folded.take(seen);
  return folded.facts(platform);
}

/** In tokens. */
export interface Counted {
  limit: number;
  used: number;
  /** Of each valid pack, in no order. */
  packs: { pack: string; left: number; taken: number }[];
}

/** The month of the instant, after every token of every month before it was taken from its place. */
export function count(seen: readonly Event[], instant: string): Counted {
  const asked = Number(instant.slice(5, 7));
  const spent: Record<string, number> = {};
  for (let number = 1; ; number += 1) {
    const month = monthAt(number);
    const cut = closings(seen).find((closing) => closing.month >= month);
    const visible = cut === undefined ? seen : seen.slice(0, Number(cut.index));
    const valid = validPacks(visible, month);
    const until = number < asked ? `${monthAt(number).slice(0, 8)}31T23:59:59.999Z` : instant;
    const limit = limitIn(visible, until);
    const used = usedIn(seen, month);
    const packs = valid.map(({ pack, capacity }) => {
      return { pack, left: Math.max(capacity - (spent[pack] ?? 0), 0), taken: 0 };
    });
    for (let token = limit; token < used; token += 1) {
      const from = packs.find(({ left, taken }) => taken < left);
      if (from === undefined) break;
      from.taken += 1;
      spent[from.pack] = (spent[from.pack] ?? 0) + 1;
    }
    if (number === asked) return { limit, used, packs };
  }
}

function usedIn(seen: readonly Event[], month: string): number {
  let tokens = 0;
  for (const event of seen) {
    const inMonth = event.kind === "usage" && event.usage_month === month;
    if (inMonth && event.billing_month === month) tokens += event.tokens;
  }
  return tokens;
}

function limitIn(visible: readonly Event[], until: string): number {
  let minutes = 0n;
  for (const event of visible) {
    if (event.kind === "quota" && counts(event, until)) minutes = event.monthly_minutes;
  }
  return Number(minutes) * TOKENS;
}

/** One that is to hold at once holds in its month whatever the hour; one that is announced, from its instant on. */
function counts({ at, effective_from }: LimitSaid, until: string): boolean {
  if (effective_from <= until) return true;
  const announced = Date.parse(effective_from) - Date.parse(at) > 1;
  return !announced && effective_from.slice(0, 7) === until.slice(0, 7);
}

function validPacks(
  visible: readonly Event[],
  month: string,
): { pack: string; capacity: number }[] {
  const names: string[] = [];
  for (const event of visible) {
    if (event.kind === "pack" && !names.includes(event.pack)) names.push(event.pack);
  }
  const valid: { pack: string; capacity: number; expires_in: string; first: number }[] = [];
  for (const [first, pack] of names.entries()) {
    const newest = visible.findLast((event) => event.kind === "pack" && event.pack === pack);
    if (newest?.kind !== "pack" || newest.minutes === 0n) continue;
    const { expires_in, purchased_in } = newest;
    if (month < purchased_in || month > expires_in) continue;
    valid.push({ pack, capacity: Number(newest.minutes) * TOKENS, expires_in, first });
  }
  return valid.sort((a, b) => a.expires_in.localeCompare(b.expires_in) || a.first - b.first);
}
