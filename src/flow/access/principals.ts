/** The register of who has used which log, and the end of somebody's access. */
import { z } from "zod";
import { Problem } from "../../core/problem.ts";
import { LogId, NonEmptyText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import {
  barPrincipals,
  isRemoved,
  type KnownPrincipal,
  liftBars,
  readLogsOf,
  readPrincipals,
} from "../../store/principals.ts";
import type { Standings } from "./standing.ts";

export interface ShownPrincipal {
  id: string;
  issuer: string;
  subject: string;
  /** With which they ever came. */
  roles: string[];
  first_at: string;
  /** UTC day. */
  last_on: string;
  /** Since when nothing holds for them on this log. */
  barred_at?: string;
}

export interface PrincipalPage {
  log: string;
  principals: ShownPrincipal[];
  /** Where there is more, the `after` of the next page. */
  next?: string;
}

const PAGE = 500;

/** @throws Problem `not-found` */
export async function showPrincipals(
  { sql }: { sql: Sql },
  log: string,
  after = "",
): Promise<PrincipalPage> {
  if ((await readHead(sql, log)) === undefined) throw new Problem("not-found");
  const found = await readPrincipals(sql, log, { after, limit: PAGE });
  const last = found.at(-1);
  const more = found.length === PAGE && last !== undefined;
  return { log, principals: found.map(shown), ...(more && { next: last.id }) };
}

function shown({ id, issuer, subject, roles, firstAt, lastOn, barredAt }: KnownPrincipal) {
  return {
    ...{ id, issuer, subject, roles: rolesOf(roles) },
    first_at: firstAt.toISOString(),
    last_on: lastOn,
    ...(barredAt !== null && { barred_at: barredAt.toISOString() }),
  };
}

export function rolesOf(text: string): string[] {
  return text === "" ? [] : text.split(",");
}

export const NewBar = z.strictObject({ reason: NonEmptyText, log: LogId.exactOptional() });
export type NewBar = z.infer<typeof NewBar>;

interface Barring {
  sql: Sql;
  standings: Standings;
}

/** Whose access it is about, and who says so. */
interface Said extends NewBar {
  id: string;
  /** Opaque id of who asks. */
  by: string;
  /** Whether who asks is an operator of a log. */
  oversees: (log: string) => boolean;
}

/**
 * Nothing holds for them any more: on one log or, without one, at all. This process knows at once, the others
 * within 5 s.
 *
 * @returns whether anything changed
 * @throws Problem `not-found` as `assertOverseen` does
 */
export async function bar({ sql, standings }: Barring, said: Said): Promise<boolean> {
  await assertOverseen(sql, said);
  const { id, by, log = "", reason } = said;
  const barred = await barPrincipals(sql, [{ log, id, by, reason }]);
  await standings.renew();
  return barred > 0;
}

/**
 * The end of just such a bar: what it took away holds again.
 *
 * @returns and throws as `bar` does; and Problem `already-decided` of who was removed by a review, which only a
 *   later one takes back: it is an entry of the log, and this is none
 */
export async function unbar({ sql, standings }: Barring, said: Said): Promise<boolean> {
  await assertOverseen(sql, said);
  const { id, by, log = "", reason } = said;
  const lifted = await liftBars(sql, [{ log, id, by, reason }], { reviews: false });
  if (lifted === 0 && (await isRemoved(sql, { log, id }))) throw new Problem("already-decided");
  await standings.renew();
  return lifted > 0;
}

/**
 * Of all logs only who oversees each that the principal has used decides: a log may have its own operators.
 *
 * @throws Problem `not-found`, also for somebody who never came: it would be a slip, and bar nobody
 */
async function assertOverseen(sql: Sql, { id, log, oversees }: Said): Promise<void> {
  const used = await readLogsOf(sql, id);
  const about = log === undefined ? used.filter((each) => each !== "") : [log];
  if (used.length === 0 || !about.every(oversees)) throw new Problem("not-found");
}
