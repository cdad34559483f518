/** Which version of the service writes to a log (BYTES §4). */
import type { Body } from "./entry.ts";

type Service = Omit<Body<"service">, "salt">;

/**
 * Is `next` to be said after the newest `service` entry of the log? Once each, and never an older one:
 * while two versions run side by side, they do not take turns.
 */
export function supersedes(newest: Service | undefined, next: Service): boolean {
  if (newest === undefined) return true;
  const order = next.version.localeCompare(newest.version, "en", { numeric: true });
  return order > 0 || (order === 0 && next.schema_sha256 !== newest.schema_sha256);
}
