/**
 * Watches that every counter of every key comes, and that active keys of hosted runners go on attesting:
 * completeness is claimed up to the last attestation and no further (DESIGN §4).
 */
import { counterGap, silence } from "../../core/anomaly.ts";
import type { Finding } from "../../core/break.ts";
import type { KeyState, Prefix } from "../../core/prefix.ts";
import { instantText } from "../../core/unit.ts";
import {
  dropGap,
  findGaps,
  readGaps,
  readKeyMarks,
  type StandingGap,
} from "../../store/counters.ts";
import { transact } from "../../store/transact.ts";
import type { Clock } from "../clock.ts";
import { standing } from "../control/standing.ts";
import { hasCome } from "./end.ts";
import { type Healed, healBreaks, type Opening, openBreaks, readOpen } from "./open.ts";

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
  const late = gaps.flatMap((gap) => {
    return counterGap({ ...gap, since: gap.since.getTime() }, now, graceMs);
  });
  const opened = await openBreaks(watching, log, late);
  const filled = gaps.filter(({ missing }) => missing === 0n);
  const come = await withoutMore(watching, log, filled);
  const healed = await healBreaks(watching, log, come.map(filledGap));
  await transact(sql, async (tx) => {
    for (const gap of come) await dropGap(tx, log, gap);
  });
  return { opened, healed };
}

/**
 * Those of which no open break names more counters, that have not come: where a database came back and gaps are
 * found anew, what was one may be two by then.
 */
async function withoutMore(
  { hash, sql }: Opening,
  log: string,
  filled: readonly StandingGap[],
): Promise<StandingGap[]> {
  const waiting = new Set<StandingGap>();
  const asked = filled.map((gap) => ({ ...filledGap(gap), gap }));
  for (const { found, index } of await readOpen(sql, log, asked, hash)) {
    const broken = await standing(sql, log, "break", index);
    if (broken !== undefined && !(await hasCome(sql, log, broken.body))) waiting.add(found.gap);
  }
  return filled.filter((gap) => !waiting.has(gap));
}

function filledGap({ filled, first, kid }: StandingGap): Healed {
  const about = { first: String(first), kid };
  return { about, code: "counter-gap", tracking: "hosted", evidence: filled ?? undefined };
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
