/** A namespace's facts from the log (DESIGN §9): what core/quota calculates with, as of one size. */

import { parseSignedComputeMs } from "../../core/charge.ts";
import { decodeEntry, type Entry, type EntryOf } from "../../core/entry.ts";
import type { Closing } from "../../core/month.ts";
import { packName } from "../../core/pack.ts";
import { Problem } from "../../core/problem.ts";
import type { LimitFact, PackFact, QuotaFacts } from "../../core/quota/quota.ts";
import { epochMs, instantText, monthOf } from "../../core/unit.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { type Head, readHeads } from "../../store/heads.ts";
import { readCutOffEntries, readPostedUsage, readQuotaEntries } from "../../store/quotas.ts";
import { readWatermark } from "../../store/watermarks.ts";

/** What is a namespace's own. */
export interface OwnFacts extends Pick<QuotaFacts, "limits" | "packs" | "used"> {
  /** Of it and of later months `used` tells all, of earlier ones nothing. */
  readonly firstMonth: string;
  /** Index of the last entry that concerns it, any hosted usage and adjustment included; −1: there is none. */
  readonly touched: bigint;
}

/** What all namespaces of a log have in common. */
export interface CommonFacts extends Pick<QuotaFacts, "platform" | "closings"> {
  /** Index of the last cut-off or withdrawal of one; −1: there is none. */
  readonly touched: bigint;
}

/** `touched`: index of the last entry that concerns the namespace; −1: there is none. */
export type TouchedFacts = QuotaFacts & { readonly touched: bigint };

/**
 * The facts of each that is asked for, also where nothing is known of it. `copy` as `readHeads` says.
 *
 * @param tx of one snapshot: repeatable read
 * @throws Problem `not-found`: there is no such log
 */
export async function readFacts(
  tx: Transaction,
  log: string,
  namespaces: readonly string[],
): Promise<{ asOf: bigint; copy: string; facts: Map<string, TouchedFacts> }> {
  const head = (await readHeads(tx, [log])).get(log);
  if (head === undefined) throw new Problem("not-found");
  const [common, own] = await Promise.all([
    readCommon(tx, log),
    readOwn(tx, log, head, namespaces),
  ]);
  const facts = new Map(Array.from(own, ([name, each]) => [name, together(common, each)]));
  return { asOf: head.size, copy: head.copy, facts };
}

export function together(common: CommonFacts, own: OwnFacts): TouchedFacts {
  const both = { ...common, ...own };
  return own.touched > common.touched ? both : { ...both, touched: common.touched };
}

/** @param below entries from there on are not looked at */
export async function readCommon(
  tx: Transaction,
  log: string,
  below?: bigint,
): Promise<CommonFacts> {
  const [genesis, cutOffs] = await Promise.all([
    readEntry(tx, log, 0n),
    readCutOffEntries(tx, log, below),
  ]);
  const entry = decoded(genesis.bytes);
  if (entry.kind !== "log") throw new Error("facts: entry 0 is no log");
  const entries = cutOffs.map(decoded);
  const withdrawn = new Set(
    entries.flatMap((each) =>
      each.kind === "month_closing_withdrawn" ? [BigInt(each.body.closing)] : [],
    ),
  );
  const closings = entries.flatMap((each): Closing[] => {
    const { index, kind } = each;
    const stands = kind === "month_closing" && !withdrawn.has(index);
    return stands ? [{ index, month: each.body.month }] : [];
  });
  return { platform: entry.body.platform, closings, touched: entries.at(-1)?.index ?? -1n };
}

/**
 * Months are told from the first that a pack can have been drawn for, and always the two before which
 * nobody asks: the one that the log has come to, and the last.
 *
 * @param head as the same snapshot has it, or as it was at an earlier size; of that `touched` is no word then
 */
export async function readOwn(
  tx: Transaction,
  log: string,
  head: Pick<Head, "at" | "size">,
  namespaces: readonly string[],
): Promise<Map<string, OwnFacts>> {
  const [entries, folded] = await Promise.all([
    readQuotaEntries(tx, log, namespaces, head.size),
    readWatermark(tx, log),
  ]);
  const recent = monthBefore(monthOf(head.at));
  const own = new Map(namespaces.map((name) => [name, new Gathered(recent)]));
  for (const bytes of entries) {
    const entry = decoded(bytes);
    if (entry.kind === "quota") own.get(entry.body.namespace_id)?.limit(entry);
    else if (entry.kind === "pack") own.get(entry.body.namespace_id)?.pack(entry);
    else throw new Error("facts: another kind of entry");
  }
  const asked = Array.from(own, ([namespace, { firstMonth }]) => ({
    namespace,
    since: firstMonth,
  }));
  const posted = await readPostedUsage(tx, log, { from: folded?.size ?? 0n, to: head.size }, asked);
  for (const { namespace, month, amount, last } of posted) {
    own.get(namespace)?.post(month, parseSignedComputeMs(amount), last);
  }
  return own;
}

class Gathered implements OwnFacts {
  readonly limits: LimitFact[] = [];
  readonly packs: PackFact[] = [];
  readonly used = new Map<string, bigint>();
  firstMonth: string;
  touched = -1n;

  constructor(recent: string) {
    this.firstMonth = recent;
  }

  limit({ at, index, body }: EntryOf<"quota">): void {
    const { beyond, cap, effective_from } = body;
    this.limits.push({
      ...{ index, at, beyond, effective_from },
      cap: cap === "" ? undefined : BigInt(cap),
      monthly_minutes: BigInt(body.monthly_minutes),
      grace_minutes: BigInt(body.grace_minutes),
    });
    this.#touch(index);
  }

  pack({ index, body }: EntryOf<"pack">): void {
    const { expires_in, purchased_in } = body;
    if (purchased_in < this.firstMonth) this.firstMonth = purchased_in;
    this.packs.push({
      ...{ index, pack: packName(body), expires_in, purchased_in },
      minutes: BigInt(body.minutes),
      source_version: BigInt(body.source_version),
    });
    this.#touch(index);
  }

  post(month: string | null, amount: bigint, last: bigint): void {
    // A month of nothing but free builds has no figure: memory is for what is used.
    if (month !== null && amount !== 0n) this.used.set(month, amount);
    this.#touch(last);
  }

  #touch(index: bigint): void {
    if (index > this.touched) this.touched = index;
  }
}

function monthBefore(month: string): string {
  return monthOf(instantText(epochMs(`${month}T00:00:00.000Z`) - 1));
}

function decoded(bytes: Uint8Array): Entry {
  const entry = decodeEntry(bytes);
  if (typeof entry === "string") throw new Error(`facts: an entry is ${entry}`);
  return entry;
}
