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
import { type Healed, healBreaks, type Opening, openBreaks } from "./open.ts";

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
  const come = gaps.filter(({ missing }) => missing === 0n);
  const healed = await healBreaks(watching, log, come.map(filledGap));
  await transact(sql, async (tx) => {
    for (const gap of come) await dropGap(tx, log, gap);
  });
  return { opened, healed };
}

function filledGap({ filled, first, kid }: StandingGap): Healed {
  const about = { first: String(first), kid };
  return { about, code: "counter-gap", tracking: "hosted", evidence: filled ?? undefined };
}

/**
 * What it opens is ended by the key's next attestation (flow/report/attest); of a key that has ended none is to
 * be waited for: two persons say what is to become of it.
 *
 * @returns how many breaks were opened
 */
async function watchSilence(watching: WatchingKeys, log: string, prefix: Prefix): Promise<number> {
  const { clock, graceMs, sql } = watching;
  const bounds = { now: clock.now(), grace_ms: graceMs };
  const marks = await readKeyMarks(sql, log);
  const active = marks.filter(({ kid }) => isActive(prefix, prefix.key(kid)));
  const findings = active.flatMap((mark): Finding[] => [
    ...silence("missing-attestation", mark.kid, mark.heard_at?.getTime(), bounds),
    ...silence("undelivered", mark.kid, mark.undelivered_since?.getTime(), bounds),
  ]);
  return await openBreaks(watching, log, findings);
}

/** It has not ended, and a hosted runner is among those that it speaks for. */
function isActive(prefix: Prefix, key: KeyState | undefined): boolean {
  if (key === undefined || key.trustedUpTo !== undefined) return false;
  const { runners = [] } = prefix.enrolment(key.enrolment) ?? {};
  return runners.some(({ tracking }) => tracking === "hosted");
}
