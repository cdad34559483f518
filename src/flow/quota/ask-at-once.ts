/**
 * Many namespaces of a log, each asked about jobs of which nothing new is said: all in one message to live usage,
 * and with nothing of their own to wait for. Where that does not do, `askInTurns` has the rest.
 */
import type { Ask } from "../../core/quota/live.ts";
import {
  type Asked,
  type Asking,
  answered,
  isRun,
  type Prepared,
  prepared,
  wantsAt,
} from "./ask.ts";
import { AT_ONCE } from "./ask-in-turns.ts";
import type { Live } from "./standing.ts";

export type AskingAll = Asking & { live: Pick<Live, "askAll"> };

export interface Inquiry {
  readonly namespace: string;
  readonly asks: readonly Ask[];
}

/** @returns undefined in place of each that more has to be done for: then it is as if it had not been asked */
export async function askAtOnce(
  asking: AskingAll,
  log: string,
  inquiries: readonly Inquiry[],
  maxAgeMs: number,
): Promise<(Asked | undefined)[]> {
  const { clock, ledger, live } = asking;
  const readSince = clock.now() - maxAgeMs;
  const wants = wantsAt(readSince, maxAgeMs);
  const calls: Prepared[] = [];
  const positions: number[] = [];
  for (const [position, { namespace, asks }] of inquiries.entries()) {
    if (asks.length > AT_ONCE || asks.some(isRun)) continue;
    const key = { log, namespace };
    const held = ledger.known(key, wants);
    if (held === undefined) continue;
    calls.push(prepared(asking, key, held, asks));
    positions.push(position);
  }
  const asked = new Array<Asked | undefined>(inquiries.length);
  const told = calls.length === 0 ? [] : await live.askAll(calls);
  for (const [i, call] of calls.entries()) {
    const { answer, source } = told[i] ?? {};
    if (answer?.kind !== "done" || source === undefined) continue;
    asked[positions[i] ?? -1] = answered(asking, call, { answer, source, readSince });
  }
  return asked;
}
