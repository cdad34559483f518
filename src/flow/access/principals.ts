/** The register of who has used which log, and the end of somebody's access. */
import { z } from "zod";
import { Problem } from "../../core/problem.ts";
import { LogId, NonEmptyText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import {
  barPrincipals,
  isKnownPrincipal,
  type KnownPrincipal,
  readPrincipals,
} from "../../store/principals.ts";
import type { Standings } from "./standing.ts";

export interface ShownPrincipal {
  id: string;
  issuer: string;
  subject: string;
  /** Held at the last use. */
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

/**
 * Nothing holds for them any more: on one log, or at all. This process knows at once, the others within 5 s.
 * @returns whether anything changed
 * @throws Problem `not-found` for somebody who never came: it would be a slip, and bar nobody
 */
export async function bar(
  { sql, standings }: { sql: Sql; standings: Standings },
  by: string,
  { id, log = "", reason }: NewBar & { id: string },
): Promise<boolean> {
  if (!(await isKnownPrincipal(sql, id))) throw new Problem("not-found");
  const barred = await barPrincipals(sql, [{ log, id, by, reason }]);
  await standings.renew();
  return barred > 0;
}
