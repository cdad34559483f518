/** Jobs that the platform knows never to have run: what was kept for them, or heard of them, is given back. */
import { Problem } from "../../core/problem.ts";
import { type Asking, askNamespace } from "./ask.ts";

export interface NeverRan {
  job_id: string;
  namespace_id: string;
}

/**
 * Repeating it changes nothing.
 * @throws Problem `not-found` if there is no such log; `busy` while Redis is away, which must hear of it
 */
export async function neverRan(
  asking: Asking,
  log: string,
  jobs: readonly NeverRan[],
): Promise<void> {
  const namespaces = new Map<string, string[]>();
  for (const { job_id, namespace_id } of jobs) {
    const known = namespaces.get(namespace_id);
    if (known === undefined) namespaces.set(namespace_id, [job_id]);
    else known.push(job_id);
  }
  const asked = await Promise.all(
    Array.from(namespaces, ([namespace, ids]) => {
      const asks = ids.map((job) => ({ kind: "never_ran", job }) as const);
      return askNamespace(asking, { log, namespace }, asks, { maxAgeMs: Number.MAX_SAFE_INTEGER });
    }),
  );
  if (asked.some(({ alone }) => alone)) throw new Problem("busy");
}
