/** Rows of the access log against their numbers, their mark and the digests that stand on the log. */
import { accessGaps, daysOfAccess } from "../../store/access-log.ts";
import { readNewest } from "../../store/registers.ts";
import type { Snapshot } from "../../store/snapshots.ts";
import { checkDay, isSame } from "../access/digest.ts";
import { decodedAs } from "../usage/show.ts";
import { finding } from "./compare.ts";
import type { Finding } from "./event.ts";

/** A day whose rows are all gone is found by their numbers: days of a database that was lost had other numbers. */
export async function* compareAccess(snapshot: Snapshot, log: string): AsyncGenerator<Finding> {
  const { sql } = snapshot;
  const newest = await readNewest(sql, log, "access_digest");
  yield* compareNumbers(snapshot, { log, index: newest?.index ?? 0n });
  const last = newest && decodedAs("access_digest", newest.bytes).body.day;
  if (last === undefined) return;
  for (const day of await daysOfAccess(sql, log)) {
    if (day > last) return;
    const { found, stated } = await checkDay(sql, log, day);
    if (stated !== undefined && isSame(stated, found)) continue;
    const place = { log, table: "access_log", index: BigInt(stated?.index ?? newest?.index ?? 0n) };
    yield finding(place, day, shown(stated), shown(found));
  }
}

/** @param of.index of the newest digest, behind which a gap came, or which says that it is there */
async function* compareNumbers(
  snapshot: Snapshot,
  of: { log: string; index: bigint },
): AsyncGenerator<Finding> {
  const stream = await accessGaps(snapshot, of.log);
  for (let page = await stream.page(); page.length > 0; page = await stream.page()) {
    for (const { position, last } of page) {
      if (last < position) {
        yield finding({ ...of, table: "access_marks" }, "number", position - 1n, last);
      } else {
        const numbers = last === position ? position : `${position} to ${last}`;
        yield finding({ ...of, table: "access_log" }, "number", numbers, null);
      }
    }
  }
  await stream.close();
}

function shown(digest: { lines: string; lines_sha256: string } | undefined): string | null {
  return digest === undefined ? null : `${digest.lines} rows, digest ${digest.lines_sha256}`;
}
