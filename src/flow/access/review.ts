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
import { NonEmptyText } from "../../core/unit.ts";
import { readReviewedAt } from "../../store/access-reviews.ts";
import type { Sql, Transaction } from "../../store/connect.ts";
import {
  barPrincipals,
  insertReview,
  type KnownPrincipal,
  readPrincipals,
} from "../../store/principals.ts";
import type { Clock, Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import { salt } from "../log/chain.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { rolesOf } from "./principals.ts";
import type { Standings } from "./standing.ts";

/** Of one review: more would not be looked at by a person, one by one. */
const PRINCIPALS_MAX = 1_000;
/** Ids in an answer that says what is missing. */
const NAMED_MAX = 100;

const Ids = z.array(NonEmptyText).max(PRINCIPALS_MAX);

/** Both days are part of it. */
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
 * @throws Problem `review-incomplete` where somebody who had access is left out, or somebody is named who had
 *   none; `too-many`
 */
export async function review(
  { appender, random, standings }: Reviewing,
  { log, by }: { log: string; by: string },
  { from, to, keep, remove }: NewReview,
): Promise<Receipt & { principals: string; kept: string }> {
  const counts = { principals: String(keep.length + remove.length), kept: String(keep.length) };
  const receipt = await appender.control(log, "access_review", async (_, __, tx) => {
    const people = await accessOf(tx, log, { from, to });
    assertDecided(people, [...keep, ...remove]);
    const kept = new Set(keep);
    const lines = people.map((person) => lineOf(person, kept.has(person.id))).join("");
    const digest = createHash("sha256").update(lines).digest();
    await insertReview(tx, log, { digest, lines });
    await barPrincipals(
      tx,
      remove.map((id) => ({ log, id, by, reason: "access review" })),
    );
    return { by, from, to, ...counts, list_sha256: encodeBase64(digest), salt: salt(random) };
  });
  await standings.renew();
  return { ...receipt, ...counts };
}

/**
 * Who could use the log at some time from … to, by the register, and still can; in the order of their ids. Not who
 * is a viewer alone: of tenants that see their own namespaces there are thousands, and the platform says who they are.
 */
async function accessOf(
  tx: Transaction,
  log: string,
  { from, to }: { from: string; to: string },
): Promise<KnownPrincipal[]> {
  const search = { after: "", limit: PRINCIPALS_MAX + 1, viewers: false };
  const all = await readPrincipals(tx, log, search);
  const people = all.filter(({ barredAt, firstAt, lastOn }) => {
    const firstOn = firstAt.toISOString().slice(0, "YYYY-MM-DD".length);
    return barredAt === null && lastOn >= from && firstOn <= to;
  });
  if (all.length > PRINCIPALS_MAX) throw new Problem("too-many");
  return people;
}

function assertDecided(people: readonly KnownPrincipal[], named: readonly string[]): void {
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
const DAY_MS = 86_400_000;

/** Logs whose last review, or whose beginning if there is none, is longer ago than a quarter. */
export async function overdueReviews(sql: Sql, clock: Clock): Promise<string[]> {
  const before = clock.now() - REVIEW_DAYS_MAX * DAY_MS;
  const reviewed = await readReviewedAt(sql);
  return reviewed.filter(({ at }) => at.getTime() < before).map(({ log }) => log);
}
