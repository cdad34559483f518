/** The feed and what consumers have of it, asked in every way that is answered differently. */
import type { Answered, Request } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

/** @param size of the log, all of it sealed */
export async function askOfFeed(
  tell: Tell,
  { log, size }: { log: string; size: string },
): Promise<void> {
  const feed = `GET /v1/feed?log=${log}`;
  for (const more of ["", "&limit=1", `&cursor=${size}`, "&cursor=9999999", "&limit=0"]) {
    await tell(feed + more);
  }
  await tell(feed, { headers: { accept: "application/x-ndjson" } });
  const ack = { log, consumer: "portal", months: [], up_to: size };
  const month = { billing_month: "2099-01-01", compute_ms: "1.000000", events: "1" };
  for (const change of [
    {},
    {},
    { up_to: "1" },
    { up_to: "9999999" },
    { months: [month] },
    { months: [month, month] },
  ]) {
    await tell("POST /v1/feed/ack", { json: { ...ack, ...change } });
  }
}
