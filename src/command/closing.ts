/** Months that are cut off, closed beside requests as soon as they can be. */
import type { Finishing } from "../flow/month/finish.ts";
import { finishLoop } from "../flow/month/finish-loop.ts";
import type { Logger } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

export function startClosing(
  options: Finishing & { log: Logger; signal: AbortSignal },
): Promise<void> {
  const trouble = openTrouble(options.log, "closing of months");
  const listing = openTrouble(options.log, "closing of months, list of logs");
  return finishLoop({
    ...options,
    onFailure: (error, name) => {
      if (name === undefined) listing.failed(error);
      else trouble.failed(error, name);
    },
    onRound: () => {
      trouble.roundEnded();
      listing.roundEnded();
    },
  });
}
