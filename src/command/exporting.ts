/** Exports beside requests: asked for when they are due, made, delivered, and removed when their time is over. */
import { setTimeout as delay } from "node:timers/promises";
import type { ExportConfig } from "../config-exports.ts";
import type { Random } from "../flow/clock.ts";
import { CLOSING_SET } from "../flow/export/closing-set.ts";
import { type Delivering, deliverDue } from "../flow/export/deliver.ts";
import { expireDue } from "../flow/export/expire.ts";
import { focus } from "../flow/export/focus.ts";
import { makeLoop } from "../flow/export/make-loop.ts";
import { askDue } from "../flow/export/schedule.ts";
import { SOURCES } from "../flow/export/sources.ts";
import type { ServiceVersion } from "../flow/log/announce.ts";
import { connect } from "../store/connect.ts";
import { openExports } from "../store/export-location.ts";
import type { Logger } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

const ROUND_MS = 5_000;

/** One export is made and one is delivered at a time. */
const HELD_MAX = 2;
const END_SECONDS = 5;

type Options = Omit<Delivering, "holds" | "onFailure" | "open"> & {
  writerUrl: string;
  exports: ExportConfig;
  random: Random;
  service: ServiceVersion;
  log: Logger;
};

export async function startExporting(options: Options): Promise<void> {
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
  await Promise.all([made, scheduleLoop({ ...options, holds })]);
  await holds.end({ timeout: END_SECONDS });
}

/** Each step by itself: a target that is away keeps no export from being asked for, and none from its end. */
async function scheduleLoop(options: Options & Pick<Delivering, "holds">): Promise<void> {
  const { exports, log, signal } = options;
  const delivery = openTrouble(log, "exports, delivery");
  const onFailure = delivery.failed;
  const steps = [
    {
      trouble: openTrouble(log, "exports, schedule"),
      run: () => askDue({ ...options, ...exports, closingSet: CLOSING_SET }),
    },
    { trouble: delivery, run: () => deliverDue({ ...options, open: openExports, onFailure }) },
    { trouble: openTrouble(log, "exports, end"), run: () => expireDue({ ...options, ...exports }) },
  ];
  // First the rest: nothing of this is in a hurry when a service starts.
  for (;;) {
    await delay(ROUND_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    for (const { trouble, run } of steps) {
      await run().catch(trouble.failed);
      trouble.roundEnded();
    }
  }
}
