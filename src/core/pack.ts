/** Packs of compute minutes: what makes one, and which version may follow which. */
import { CREDIT_RUN_SOURCE } from "./beside.ts";
import type { Body } from "./entry.ts";
import { misshapen, Problem } from "./problem.ts";
import { nextMonth } from "./unit.ts";

/** A pack is its source's: all versions of one, and nothing else, have this name. No text has a newline. */
export function packName({ source, pack_id }: Pick<Body<"pack">, "source" | "pack_id">): string {
  return `${source}\n${pack_id}`;
}

/** The source's own name of it. @param name as `packName` gives it */
export function packIdIn(name: string): string {
  return name.slice(name.indexOf("\n") + 1);
}

/** Packs of credit runs come with their run alone. @throws Problem `invalid-request` */
export function assertOutside({ source }: Pick<Body<"pack">, "source">): void {
  if (source === CREDIT_RUN_SOURCE) misshapen("pack", "source");
}

const MONTHS = 12;

/** The last of the months that a pack is good for, if nobody says otherwise. */
export function lastMonth(purchasedIn: string): string {
  let month = purchasedIn;
  for (let more = MONTHS - 1; more > 0; more -= 1) month = nextMonth(month);
  return month;
}

/**
 * @param newest version of the same pack that stands; undefined: none does
 * @throws Problem `stale-source-version`, `another-pack`
 */
export function assertFollows(newest: Body<"pack"> | undefined, next: Body<"pack">): void {
  if (newest === undefined) return;
  if (BigInt(newest.source_version) >= BigInt(next.source_version)) {
    throw new Problem("stale-source-version", { stands: newest.source_version });
  }
  const { namespace_id, purchased_in } = newest;
  if (next.namespace_id !== namespace_id || next.purchased_in !== purchased_in) {
    throw new Problem("another-pack");
  }
}
