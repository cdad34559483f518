/** How far the feed reaches: to the newest archived checkpoint. */
import { Problem } from "../../core/problem.ts";
import type { Archive } from "../../store/archive.ts";
import type { ListedLog } from "../../store/logs.ts";
import { logBehind, refusalOf } from "../log/refusal.ts";

/**
 * The archive is asked only where the database is not sealed so far: one that was restored, or a server that lags,
 * does not know what a consumer was told.
 *
 * @throws Problem `beyond-checkpoint`; `log-behind` where the archive reaches so far; `archive-unavailable`
 */
export async function assertReached(
  archive: Pick<Archive, "latestCheckpoint">,
  { log, sealed }: Pick<ListedLog, "log" | "sealed">,
  upTo: bigint,
): Promise<void> {
  if (upTo <= sealed) return;
  const archived = await archive.latestCheckpoint(log).catch((error: unknown) => {
    throw refusalOf(error) ?? error;
  });
  if (archived === undefined || upTo > archived.size) throw new Problem("beyond-checkpoint");
  throw logBehind(`archived to ${archived.size}, sealed here to ${sealed}`);
}
