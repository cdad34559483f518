/** Readiness, asked of the database once a second at most, however many ask: anyone may. */
import { type Readiness, ready, type Watching } from "../flow/ready.ts";

const KEPT_MS = 1_000;

export function watchReadiness(watching: Watching): () => Promise<Readiness> {
  let last: { at: number; readiness: Promise<Readiness> } | undefined;
  return () => {
    const now = performance.now();
    if (last === undefined || now - last.at > KEPT_MS)
      last = { at: now, readiness: ready(watching) };
    return last.readiness;
  };
}
