/** Exports beside requests: asked for when they are due, made, delivered, and removed when their time is over. */
import { setTimeout as delay } from "node:timers/promises";
import type { ExportConfig } from "../config-exports.ts";
import type { Random } from "../flow/clock.ts";
import { CLOSING_SET } from "../flow/export/closing-set.ts";
import { type Delivering, deliverDue } from "../flow/export/deliver.ts";
import { expireDue } from "../flow/export/expire.ts";
import { focus } from "../flow/export/focus.ts";
import { lateExports } from "../flow/export/late.ts";
import { makeLoop } from "../flow/export/make-loop.ts";
import type { Notary } from "../flow/export/note.ts";
import { askDue } from "../flow/export/schedule.ts";
import { SOURCES } from "../flow/export/sources.ts";
import type { ServiceVersion } from "../flow/log/announce.ts";
import { connect } from "../store/connect.ts";
import { openExports } from "../store/export-location.ts";
import type { LateExports } from "../store/late-exports.ts";
import type { Logger } from "../telemetry.ts";
import { openTrouble, type Trouble } from "./trouble.ts";

const ROUND_MS = 5_000;

/** One export is made and one is delivered at a time. */
const HELD_MAX = 2;
const END_SECONDS = 5;
/** Between two looks at what is late: each goes over all that there is. */
const LATE_MS = 60_000;

type Options = Omit<Delivering, "holds" | "onFailure" | "open"> &
  Pick<Notary, "archive"> & {
    writerUrl: string;
    exports: ExportConfig;
    random: Random;
    service: ServiceVersion;
    log: Logger;
    /** Between two looks at what is due. */
    roundMs?: number;
  };

export interface Exporting {
  done: Promise<void>;
  /** As of the last look, which is made first when a minute is over. */
  late(): LateExports;
}

export function startExporting(options: Options): Exporting {
  const trouble = openTrouble(options.log, "exports, late");
  let late: LateExports = { failing: 0, undelivered: 0 };
  const look = async (): Promise<void> => {
    late = await lateExports(options);
  };
  const looking = rounds({ ...options, roundMs: LATE_MS }, trouble, look);
  return { done: Promise.all([work(options), looking]).then(() => undefined), late: () => late };
}

async function work(options: Options): Promise<void> {
  const { log, service, writerUrl } = options;
  const holds = connect(writerUrl, { max: HELD_MAX, name: "minutebook-exports" });
  const making = openTrouble(log, "exports");
  const made = makeLoop({
    ...{ ...options, holds },
    generator: `minutebook ${service.version}`,
    sources: { ...SOURCES, focus: focus(options.exports.prices) },
    onFailure: making.failed,
    onRound: making.roundEnded,
  });
  await Promise.all([made, ...scheduleLoops({ ...options, holds })]);
  await holds.end({ timeout: END_SECONDS });
}

/** Each by itself: a place that is away keeps no export from being asked for, and none from its end. */
function scheduleLoops(options: Options & Pick<Delivering, "holds">): Promise<void>[] {
  const { exports, log } = options;
  const schedule = openTrouble(log, "exports, schedule");
  const delivery = openTrouble(log, "exports, delivery");
  const end = openTrouble(log, "exports, end");
  const delivering = { ...options, open: openExports, onFailure: delivery.failed };
  const expiring = { ...options, ...exports, onFailure: end.failed };
  return [
    rounds(options, schedule, () => askDue({ ...options, ...exports, closingSet: CLOSING_SET })),
    rounds(options, delivery, () => deliverDue(delivering)),
    rounds(options, end, () => expireDue(expiring)),
  ];
}

async function rounds(
  { roundMs = ROUND_MS, signal }: Pick<Options, "roundMs" | "signal">,
  trouble: Trouble,
  run: () => Promise<void>,
): Promise<void> {
  // First the rest: nothing of this is in a hurry when a service starts.
  for (;;) {
    await delay(roundMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    await run().catch(trouble.failed);
    trouble.roundEnded();
  }
}
