/**
 * A webhook of GitLab's. Whoever knows the log's secret is its platform; nothing else about a request is proven,
 * and what it says is only ever held against the log.
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { Problem } from "../../core/problem.ts";
import { readJobHook } from "./seen-job.ts";
import { type Taking, take } from "./take.ts";

/** By log. */
export type HookSecrets = ReadonlyMap<string, string>;

/** @throws Problem `unauthenticated`, for a log without a secret like for a wrong one */
export function assertHookSecret(secrets: HookSecrets, log: string, token: string): void {
  const secret = secrets.get(log);
  // Digests: of one length whatever was sent, and made also where there is nothing to compare with.
  const matches = timingSafeEqual(digest(token), digest(secret ?? ""));
  if (secret === undefined || !matches) throw new Problem("unauthenticated");
}

function digest(text: string): Uint8Array {
  return createHash("sha256").update(text).digest();
}

/** GitLab's name for the event of a job; it may be told to send others, too, and gives up who refuses them. */
const JOB_HOOK = "Job Hook";

/**
 * The same again changes nothing. A job that no runner has taken yet is nobody's.
 *
 * @returns how many jobs were kept: one, or none
 * @throws Problem `invalid-request` for what is no such event; `not-found`, `busy`
 */
export async function hearHook(
  taking: Taking,
  log: string,
  { event, text }: { event: string; text: string },
): Promise<number> {
  if (event !== JOB_HOOK) return 0;
  const job = readJobHook(text);
  if (job === undefined) throw new Problem("invalid-request");
  return await take(taking, log, [job], "webhook");
}
