/** Why a Redis cannot be used, in words that may stand in a log. */
import type { RedisPlace } from "./live-redis.ts";

const CHARS_MAX = 200;
/** A server that does not know a command says with what it was called: a password, or what a namespace uses. */
const ARGUMENTS = /,? with args beginning with:.*$/s;

/** Of an error of its client: never a password, nor what was asked. */
export function redisReason(place: RedisPlace, error: unknown): string {
  const said = (error instanceof Error ? error.message : String(error)).replace(ARGUMENTS, "");
  let reason = said;
  for (const secret of passwordsOf(place)) reason = reason.replaceAll(secret, "***");
  return reason.slice(0, CHARS_MAX);
}

/** As they are written in the URLs, and as they are sent. */
function passwordsOf(place: RedisPlace): Set<string> {
  const urls = place.kind === "single" ? [place.url] : place.urls;
  const written = urls.map((url) => new URL(url).password).filter((text) => text !== "");
  return new Set(written.flatMap((text) => [text, decodeURIComponent(text)]));
}
