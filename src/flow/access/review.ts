/**
 * The quarterly review: a person looks at everybody who had access, and says of each whether they stay. What
 * they saw and said is kept as lines, whose digest is the entry's; who goes, goes with it.
 */
import { createHash } from "node:crypto";
import { z } from "zod";
import { DayText } from "../../core/body.ts";
import { canonical } from "../../core/json.ts";
import { Problem } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import { epochMs, instantText, NonEmptyText } from "../../core/unit.ts";
import { readReviewedAt } from "../../store/access-reviews.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import {
  BY_REVIEW,
  barPrincipals,
  insertReview,
  type KnownPrincipal,
  liftBars,
  readReviewable,
} from "../../store/principals.ts";
import { readNewest } from "../../store/registers.ts";
import type { Clock, Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { decodedAs } from "../usage/show.ts";
import { rolesOf } from "./principals.ts";
import type { Standings } from "./standing.ts";

/** Of one review, which holds the log's head meanwhile. Who is barred takes no place: leavers make room. */
const PRINCIPALS_MAX = 10_000;
/** Ids in an answer that says what is missing. */
const NAMED_MAX = 100;
const DAY_MS = 86_400_000;

const Ids = z.array(NonEmptyText).max(PRINCIPALS_MAX);

/** Both days are part of it. Who was removed by an earlier one and is kept by this one is back. */
export const NewReview = z
  .strictObject({ from: DayText, to: DayText, keep: Ids, remove: Ids })
  .refine(({ from, to }) => from <= to, { path: ["to"] })
  .refine(
    ({ keep, remove }) => new Set([...keep, ...remove]).size === keep.length + remove.length,
    {
      path: ["remove"],
    },
  );
export type NewReview = z.infer<typeof NewReview>;

export interface Reviewing {
  appender: Appender;
  random: Random;
  standings: Standings;
}

/**
 * @param by opaque id of who looked
 * @throws Problem `review-incomplete` where somebody who can get in is left out, or somebody is named who is not
 *   in the register, or barred by hand; `invalid-request` where days between the last review and this one are
 *   looked at by none; `too-many`
 */
export async function review(
  { appender, random, standings }: Reviewing,
  { log, by }: { log: string; by: string },
  { from, to, keep, remove }: NewReview,
): Promise<Receipt & { principals: string; kept: string }> {
  const counts = { principals: String(keep.length + remove.length), kept: String(keep.length) };
  const receipt = await appender.control(log, "access_review", async (_, __, tx) => {
    await assertNoGap(tx, log, from);
    const kept = new Set(keep);
    const people = await reviewable(tx, log, keep);
    assertComplete(people, [...keep, ...remove]);
    const lines = people.map((person) => lineOf(person, kept.has(person.id))).join("");
    const digest = createHash("sha256").update(lines).digest();
    await insertReview(tx, log, { digest, lines });
    const said = (id: string) => ({ log, id, by, reason: BY_REVIEW });
    await barPrincipals(tx, remove.map(said));
    await liftBars(tx, keep.map(said), { reviews: true });
    return { by, from, to, ...counts, list_sha256: encodeBase64(digest), salt: salt(random) };
  });
  await standings.renew();
  return { ...receipt, ...counts };
}

/** Each begins no later than the day after the one before it, or with the log: no day is looked at by none. */
async function assertNoGap(tx: Transaction, log: string, from: string): Promise<void> {
  const last = await readNewest(tx, log, "access_review");
  const latest =
    last === undefined
      ? dayOf(epochMs((await readEntry(tx, log, 0n)).at))
      : dayOf(Date.parse(decodedAs("access_review", last.bytes).body.to) + DAY_MS);
  if (from > latest) throw new Problem("invalid-request", { members: ["from"] });
}

/**
 * Whoever can get in, whenever they last came; and of those whom a review removed the ones who come back. Not who is
 * a viewer alone: of tenants that see their own namespaces there are thousands, and the platform says who they are.
 */
async function reviewable(
  tx: Transaction,
  log: string,
  kept: readonly string[],
): Promise<KnownPrincipal[]> {
  const people = await readReviewable(tx, log, { kept, limit: PRINCIPALS_MAX + 1 });
  if (people.length > PRINCIPALS_MAX) throw new Problem("too-many");
  return people;
}

function assertComplete(people: readonly KnownPrincipal[], named: readonly string[]): void {
  const ids = new Set(people.map(({ id }) => id));
  const said = new Set(named);
  const missing = [...ids].filter((id) => !said.has(id));
  const strangers = named.filter((id) => !ids.has(id));
  const members = [...missing, ...strangers].slice(0, NAMED_MAX);
  if (members.length > 0) throw new Problem("review-incomplete", { members });
}

/** Without the subject, which could be a name. */
function lineOf({ id, issuer, roles, firstAt, lastOn }: KnownPrincipal, kept: boolean): string {
  const first_at = firstAt.toISOString();
  return `${canonical({ id, issuer, kept, roles: rolesOf(roles), first_at, last_on: lastOn })}\n`;
}

/** A quarter, and a day. */
export const REVIEW_DAYS_MAX = 92;

/** Logs whose last review, or whose beginning if there is none, is longer ago than a quarter. */
export async function overdueReviews(sql: Sql, clock: Clock): Promise<string[]> {
  const before = clock.now() - REVIEW_DAYS_MAX * DAY_MS;
  const reviewed = await readReviewedAt(sql);
  return reviewed.filter(({ at }) => at.getTime() < before).map(({ log }) => log);
}

function dayOf(ms: number): string {
  return instantText(ms).slice(0, "YYYY-MM-DD".length);
}
