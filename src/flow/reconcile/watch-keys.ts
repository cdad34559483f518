/**
 * Watches that every counter of every key comes, and that active keys of hosted runners go on attesting:
 * completeness is claimed up to the last attestation and no further (DESIGN §4).
 */
import { counterGap, gapOf, silence } from "../../core/anomaly.ts";
import type { Finding } from "../../core/break.ts";
import type { Body } from "../../core/entry.ts";
import type { KeyState, Prefix } from "../../core/prefix.ts";
import { instantText } from "../../core/unit.ts";
import { readOpenOfKeys } from "../../store/breaks.ts";
import type { Sql } from "../../store/connect.ts";
import {
  dropGap,
  findGaps,
  readGaps,
  readKeyMarks,
  type StandingGap,
} from "../../store/counters.ts";
import { transact } from "../../store/transact.ts";
import type { Clock } from "../clock.ts";
import { decodedAs } from "../usage/show.ts";
import { filledBy } from "./end.ts";
import { endBreaks, type Opening, openBreaks } from "./open.ts";

export interface WatchingKeys extends Opening {
  clock: Clock;
  /** How long a counter or an attestation may take to come. */
  graceMs: number;
}

/** All keys of a log that `watch` has met. @returns breaks that were opened, and healed */
export async function watchKeys(
  watching: WatchingKeys,
  log: string,
): Promise<{ opened: number; healed: number }> {
  const prefix = await watching.appender.prefix(log);
  const gaps = await watchCounters(watching, log, prefix);
  const silent = await watchSilence(watching, log, prefix);
  return { opened: gaps.opened + silent, healed: gaps.healed };
}

async function watchCounters(
  watching: WatchingKeys,
  log: string,
  prefix: Prefix,
): Promise<{ opened: number; healed: number }> {
  const { clock, graceMs, sql } = watching;
  const now = clock.now();
  const gaps = await transact(sql, async (tx) => {
    for (const { attested, kid } of await readKeyMarks(tx, log)) {
      // The last of a key that has ended is owed, whoever said it. What was used beyond is nobody's.
      const final = prefix.key(kid)?.trustedUpTo;
      const upTo = final !== undefined && final > attested ? final : attested;
      await findGaps(tx, log, { kid, upTo, at: instantText(now) });
    }
    return await readGaps(tx, log);
  });
  const told = await readTold(sql, log);
  // Where a database came back gaps are found anew, and what was one may be two by then.
  const untold = gaps.filter((gap) => !told.some((whole) => isWithin(gap, whole)));
  const late = untold.flatMap((gap) => {
    return counterGap({ ...gap, since: gap.since.getTime() }, now, graceMs);
  });
  const opened = await openBreaks(watching, log, late);
  const healed = await endBreaks(watching, log, await readFilled(sql, log, told));
  await transact(sql, async (tx) => {
    for (const gap of gaps) if (gap.missing === 0n) await dropGap(tx, log, gap);
  });
  return { opened, healed };
}

/** A gap that an open break names. */
interface ToldGap {
  index: bigint;
  body: Body<"break">;
  first: bigint;
  last: bigint;
}

async function readTold(sql: Sql, log: string): Promise<ToldGap[]> {
  const open = await readOpenOfKeys(sql, log, "counter-gap");
  return open.flatMap(({ bytes, index }) => {
    const { body } = decodedAs("break", bytes);
    const gap = gapOf(body);
    return gap === undefined ? [] : [{ index, body, ...gap }];
  });
}

function isWithin({ first, kid, last }: StandingGap, whole: ToldGap): boolean {
  return kid === whole.body.kid && whole.first <= first && last <= whole.last;
}

/** By the log, and not by gaps as they stand here: of a break whose first counter has come none may. */
async function readFilled(
  sql: Sql,
  log: string,
  told: readonly ToldGap[],
): Promise<{ index: bigint; evidence: bigint }[]> {
  const filled: { index: bigint; evidence: bigint }[] = [];
  for (const { body, index } of told) {
    const evidence = await filledBy(sql, log, body);
    if (evidence !== undefined) filled.push({ index, evidence });
  }
  return filled;
}

/**
 * What it opens is ended by the key's next attestation (flow/report/attest); of a key that named its last counter
 * none is to be waited for. A revocation is one person's word about what another signed: two say what is to become
 * of it.
 *
 * @returns how many breaks were opened
 */
async function watchSilence(watching: WatchingKeys, log: string, prefix: Prefix): Promise<number> {
  const { clock, graceMs, sql } = watching;
  const bounds = { now: clock.now(), grace_ms: graceMs };
  const marks = await readKeyMarks(sql, log);
  const findings = marks.flatMap(({ heard_at, kid, undelivered_since }): Finding[] => {
    const key = prefix.key(kid);
    if (key === undefined || !isHosted(prefix, key)) return [];
    const { final, trustedUpTo } = key;
    const unheard = final === undefined ? heard_at?.getTime() : undefined;
    const waiting = trustedUpTo === undefined ? undelivered_since?.getTime() : undefined;
    return [
      ...silence("missing-attestation", kid, unheard, bounds),
      ...silence("undelivered", kid, waiting, bounds),
    ];
  });
  return await openBreaks(watching, log, findings);
}

/** A hosted runner is among those that it speaks for. */
function isHosted(prefix: Prefix, { enrolment }: KeyState): boolean {
  const { runners = [] } = prefix.enrolment(enrolment) ?? {};
  return runners.some(({ tracking }) => tracking === "hosted");
}
