/** What was said no to in one namespace, newest first, with the arithmetic behind each. */
import { z } from "zod";
import { parseComputeMs } from "../../core/charge.ts";
import { Problem } from "../../core/problem.ts";
import { readFigures } from "../../core/quota/figures.ts";
import type { NamespaceKey } from "../../core/quota/live.ts";
import { remaining } from "../../core/quota/quota.ts";
import { instantText } from "../../core/unit.ts";
import { readHead } from "../../store/heads.ts";
import { type RecordedStop, readStops, type StopPlace } from "../../store/stops.ts";
import { readAs, type Viewer } from "../../store/viewer.ts";
import type { Clock } from "../clock.ts";
import type { Showing } from "../usage/show.ts";
import { type Amount, amountOf } from "./amount.ts";
import { limitOf, type QuotaLimit } from "./draws.ts";
import { STOPS_KEPT_MS } from "./stops.ts";

/** All but `first_at` and `times` is of the last time. */
export interface ShownStop {
  job_id: string;
  /** `run`: a heartbeat. */
  ask: string;
  first_at: string;
  last_at: string;
  times: string;
  /** Who asked: an opaque principal id, or the kid of a runner's key. */
  by: string;
  reason: string;
  source: string;
  as_of: string;
  month: string;
  beyond: "stop" | "bill";
  limit?: QuotaLimit;
  used: Amount;
  /** Limit + packs as the month began − used. */
  available: Amount;
  live: Amount;
  /** Kept beside it for jobs that were let start. */
  reserved: Amount;
  /** Available − live. */
  remaining: Amount;
}

export interface StopPage {
  log: string;
  namespace_id: string;
  stops: ShownStop[];
  /** Where there is more, the `after` of the next page. */
  next?: string;
}

const PAGE = 100;

/** A place among the stops of a namespace, as `next` says it. What comes up again meanwhile moves to the front. */
export const StopCursor = z
  .string()
  .regex(/^[0-9]{1,15}\.[0-9]{1,19}\.(?:start|go_on|run)$/)
  .transform((text): StopPlace => {
    const [at, job = "", ask] = text.split(".");
    return { lastAt: new Date(Number(at)), job, ask: StopAsk.parse(ask) };
  });
const StopAsk = z.enum(["start", "go_on", "run"]);

/** @throws Problem `not-found` if there is no such log */
export async function showStops(
  { sql, clock }: Showing & { clock: Clock },
  {
    log,
    namespace,
    after,
    viewer,
  }: NamespaceKey & { after?: StopPlace | undefined; viewer?: Viewer | undefined },
): Promise<StopPage> {
  const keptFrom = instantText(clock.now() - STOPS_KEPT_MS);
  const search = { before: after, keptFrom, limit: PAGE + 1 };
  const found = await readAs(sql, viewer, async (reader) => {
    if ((await readHead(reader, log)) === undefined) throw new Problem("not-found");
    return await readStops(reader, { log, namespace: BigInt(namespace) }, search);
  });
  const page = found.slice(0, PAGE);
  const last = found.length > PAGE ? page.at(-1) : undefined;
  const stops = page.map(shownStop);
  return { log, namespace_id: namespace, stops, ...(last && { next: cursorOf(last) }) };
}

function cursorOf({ lastAt, job, ask }: StopPlace): string {
  return `${lastAt.getTime()}.${job}.${ask}`;
}

function shownStop({ figures, firstAt, lastAt, ...stop }: RecordedStop): ShownStop {
  const quota = readFigures(figures);
  const live = parseComputeMs(stop.live);
  return {
    job_id: stop.job,
    ask: stop.ask,
    first_at: firstAt.toISOString(),
    last_at: lastAt.toISOString(),
    times: String(stop.times),
    by: stop.by,
    reason: stop.reason,
    source: stop.source,
    as_of: String(stop.asOf),
    month: quota.month,
    beyond: quota.beyond,
    ...(quota.limit && { limit: limitOf(quota.limit) }),
    used: amountOf(quota.used),
    available: amountOf(quota.available),
    live: amountOf(live),
    reserved: amountOf(parseComputeMs(stop.reserved)),
    remaining: amountOf(remaining(quota, live)),
  };
}
