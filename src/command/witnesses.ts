/** The part of the background that asks witnesses, and looks at what is held outside. */
import { setTimeout as delay } from "node:timers/promises";
import type { Policy } from "../core/policy.ts";
import { type Anchors, NO_ANCHORS, openAnchors } from "../flow/log/anchor.ts";
import type { Proven } from "../flow/log/genuine.ts";
import type { Submitting, Witness } from "../flow/log/submit.ts";
import { type WitnessObserver, witnessLoop } from "../flow/log/witness-loop.ts";
import type { Logger, Metrics } from "../telemetry.ts";
import { openTrouble, type Trouble } from "./trouble.ts";

export interface Witnessing {
  /** What was found at the last look. */
  anchors(): Anchors;
  /** Resolves after the abort, when nothing is being submitted any more. */
  done: Promise<void>;
}

const LOOK_MS = 5_000;

export function startWitnessing(
  options: Submitting &
    Proven & {
      policy: Policy | undefined;
      intervalMs: number;
      log: Logger;
      metrics: Metrics;
    },
): Witnessing {
  const { policy, signal, log } = options;
  let anchors = NO_ANCHORS;
  const looking = openTrouble(log, "anchors");
  const readAnchors = openAnchors(options);
  const look = async (): Promise<void> => {
    while (!signal.aborted) {
      await readAnchors().then(
        (found) => {
          anchors = found;
        },
        (error: unknown) => looking.failed(error),
      );
      looking.roundEnded();
      await delay(LOOK_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  const witnesses = askable(policy);
  const submitting = witnessLoop({ ...options, witnesses, observer: observerOf(options) });
  const done = Promise.all([look(), submitting]).then(() => undefined);
  return { anchors: () => anchors, done };
}

/** A witness without an address may count, but cannot be asked from here. */
function askable(policy: Policy | undefined): Witness[] {
  return (policy?.witnesses ?? []).flatMap(({ name, vkey, url }) =>
    url === undefined ? [] : [{ name, vkey, url }],
  );
}

function observerOf({ log, metrics }: { log: Logger; metrics: Metrics }): WitnessObserver {
  const troubles = new Map<string, Trouble>();
  const troubleOf = (witness: string): Trouble => {
    const trouble = troubles.get(witness) ?? openTrouble(log, `witness ${witness}`);
    troubles.set(witness, trouble);
    return trouble;
  };
  return {
    cosigned: metrics.cosigned,
    refused: metrics.notCosigned,
    failed: (witness, error, name) => troubleOf(witness).failed(error, name),
    roundEnded: (witness, lag) => {
      troubleOf(witness).roundEnded();
      if (lag !== undefined) metrics.witnessLag(witness, lag);
    },
  };
}
