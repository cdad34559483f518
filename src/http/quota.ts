/** What may start and what may go on: asked by agents and by the platform, and seen by the namespace's owner. */
import type { z } from "zod";
import { Problem } from "../core/problem.ts";
import type { Source } from "../flow/quota/ask.ts";
import { DECISION_AGE_MS, decide } from "../flow/quota/decide.ts";
import { HEARTBEATS_MAX, type Heard, hear, type Unheard } from "../flow/quota/heartbeat.ts";
import { neverRan } from "../flow/quota/never-ran.ts";
import { showStops } from "../flow/quota/show-stops.ts";
import { assertLog, viewerOf } from "./access.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import {
  assertCount,
  BATCH_LETTERS_MAX,
  mediaType,
  parsed,
  parseStrict,
  readText,
  type Unread,
} from "./body.ts";
import {
  HeartbeatBatch,
  JOBS_MAX,
  NeverRanJobs,
  Questions,
  StopSearch,
} from "./operations/shapes.ts";
import { logOf, namespaceOf } from "./path.ts";
import type { Router } from "./router.ts";

/** Of what was asked about each job, in the same order as the decisions. */
export interface DecisionObserver {
  decided(decisions: Iterable<Decided>, elapsedMs: number): void;
}

interface Decided {
  ask: "start" | "go_on" | "run";
  allowed: boolean;
  /** Undefined: nothing live had to be asked. */
  source: Source | undefined;
}

const HEARTBEATS_BYTES_MAX = 4 * 1024 * 1024;
const JOBS_BYTES_MAX = 512 * 1024;

export function quotaRoutes(router: Router, { flow, observer, reading }: Services): void {
  const { quota } = flow;

  router.open("POST /v1/heartbeats", async (ask) => {
    const single = mediaType(ask.incoming) === "jose";
    const body = await readText(ask, HEARTBEATS_BYTES_MAX);
    const texts = single ? [body] : readBatch(body);
    const start = performance.now();
    const results = await hear(flow, texts);
    observer.decided(results.flatMap(runs), performance.now() - start);
    const [first] = results;
    if (single && first !== undefined && !isHeard(first)) throw new Problem(first.code);
    return answer(200, { results });
  });

  router.guarded("POST /v1/decisions", async (ask, caller) => {
    const { log, jobs, max_age_ms } = await readJobs(ask, Questions);
    assertLog(caller, log);
    const start = performance.now();
    const maxAgeMs = max_age_ms === undefined ? DECISION_AGE_MS : Number(max_age_ms);
    const decisions = await decide(quota, { log, by: caller.id, maxAgeMs }, jobs);
    const asked = decisions.map(({ allowed, source }, i) => {
      return { allowed, source, ask: jobs[i]?.ask ?? "go_on" };
    });
    observer.decided(asked, performance.now() - start);
    return answer(200, { log, decisions });
  });

  router.guarded("POST /v1/logs/:log/never_ran", async (ask, caller) => {
    const log = logOf(ask, caller);
    const { jobs } = await readJobs(ask, NeverRanJobs);
    await neverRan(quota, log, jobs);
    return answer(200, { log, jobs: jobs.length });
  });

  router.guarded("GET /v1/quotas/:log/:namespace/stops", async (ask, caller) => {
    const key = namespaceOf(ask, caller);
    const viewer = viewerOf(caller, key.log);
    const search = { ...key, ...parsed(StopSearch, ask.query()), viewer };
    return answer(200, await showStops({ ...reading, clock: quota.clock }, search));
  });
}

async function readJobs<T extends z.ZodType>(unread: Unread, shape: T): Promise<z.infer<T>> {
  if (mediaType(unread.incoming) !== "json") throw new Problem("unsupported-media-type");
  const value = parseStrict(await readText(unread, JOBS_BYTES_MAX));
  assertCount(value, "jobs", JOBS_MAX);
  return parsed(shape, value);
}

function readBatch(text: string): readonly string[] {
  const value = parseStrict(text, BATCH_LETTERS_MAX);
  assertCount(value, "heartbeats", HEARTBEATS_MAX);
  return parsed(HeartbeatBatch, value).heartbeats;
}

function isHeard(result: Heard | Unheard): result is Heard {
  return result.code === "heard";
}

function runs(result: Heard | Unheard): Decided[] {
  if (!isHeard(result)) return [];
  return result.decisions.map(({ allowed, source }) => ({ allowed, source, ask: "run" }));
}
