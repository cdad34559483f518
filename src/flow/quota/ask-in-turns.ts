/** A namespace asked about any number of jobs, in turns: nobody else waits, in Redis or here, for a host that runs thousands. */
import type { Ask, NamespaceKey } from "../../core/quota/live.ts";
import { type Asked, type AskedResult, type Asking, type AskOptions, askNamespace } from "./ask.ts";

/** Some ten milliseconds of a server that does nothing else meanwhile. */
export const AT_ONCE = 500;

/**
 * As one command of all of them: who runs is answered by what is live after the last turn. A turn that fails
 * leaves those before it told, which saying it again does not change.
 *
 * @throws Problem as `askNamespace`
 */
export async function askInTurns(
  asking: Asking,
  key: NamespaceKey,
  asks: readonly Ask[],
  options: AskOptions,
): Promise<Asked> {
  let last = await askNamespace(asking, key, asks.slice(0, AT_ONCE), options);
  if (asks.length <= AT_ONCE) return last;
  const turns = [last];
  for (let i = AT_ONCE; i < asks.length; i += AT_ONCE) {
    last = await askNamespace(asking, key, asks.slice(i, i + AT_ONCE), options);
    turns.push(last);
  }
  const { runBound } = last.figures;
  const mayRun = runBound === undefined || last.live <= runBound;
  const results = turns.flatMap((turn) => turn.results);
  return {
    ...last,
    results: results.map((result, i) => afterAll(asks[i], result, mayRun)),
    source: turns.some(({ source }) => source === "process") ? "process" : "redis",
    stale: turns.some(({ stale }) => stale),
    alone: turns.some(({ alone }) => alone),
    complete: turns.every(({ complete }) => complete),
  };
}

function afterAll(ask: Ask | undefined, result: AskedResult, mayRun: boolean): AskedResult {
  const isRunning = ask?.kind === "run" || ask?.kind === "go_on";
  return isRunning && result.onLog !== true ? { ...result, allowed: mayRun } : result;
}
