/** The access log of a day, a page at a time. */
import { Problem } from "../../core/problem.ts";
import { isDayClosed, readAccess } from "../../store/access-log.ts";
import type { Sql } from "../../store/connect.ts";
import { readHead } from "../../store/heads.ts";
import { type AccessLine, type DayDigest, lineOf, statedDigest } from "./digest.ts";

export interface AccessPage {
  log: string;
  day: string;
  /** No row comes to it any more. */
  closed: boolean;
  lines: AccessLine[];
  /** What the log says of the whole day. */
  digest?: DayDigest & { index: string };
  /** Where there is more, the `after` of the next page. */
  next?: string;
}

const PAGE = 1_000;

/** @throws Problem `not-found` */
export async function showAccess(
  { sql }: { sql: Sql },
  { log, day, after = 0n }: { log: string; day: string; after?: bigint | undefined },
): Promise<AccessPage> {
  if ((await readHead(sql, log)) === undefined) throw new Problem("not-found");
  const [closed, digest, rows] = await Promise.all([
    isDayClosed(sql, log, day),
    statedDigest(sql, log, day),
    readAccess(sql, log, { day, after, limit: PAGE }),
  ]);
  const last = rows.at(-1);
  const more = rows.length === PAGE && last !== undefined;
  return {
    ...{ log, day, closed, lines: rows.map(lineOf) },
    ...(digest && { digest }),
    ...(more && { next: String(last.number) }),
  };
}
