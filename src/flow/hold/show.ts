/** Reports that did not become usage, and what became of them: for whoever works them off. */
import type { Body, HoldCode } from "../../core/entry.ts";
import { Problem } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import { epochMs } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { listLogs } from "../../store/logs.ts";
import {
  type ResolutionState,
  type Resolved,
  type ResolvedEntry,
  readResolved,
} from "../../store/resolutions.ts";
import type { Clock } from "../clock.ts";
import {
  asOf,
  decodedAs,
  type Page,
  reportOf,
  type Search,
  type ShownReport,
  snapshot,
} from "../usage/show.ts";

export interface Showing {
  /** As reader. */
  sql: Sql;
  clock: Clock;
}

type Why = "by" | "outcome" | "reason" | "ticket";

interface Shown<K extends Resolved> extends ShownReport {
  index: string;
  at: string;
  leaf: string;
  /** Since its entry, up to its end or else up to now. */
  age_ms: string;
  resolution?: Pick<Body<`${K}_resolved`>, Why> & { index: string; at: string };
}

export interface ShownConflict extends Shown<"conflict"> {
  /** Index of the usage that stands. */
  stands: string;
}

export interface ShownHold extends Shown<"hold"> {
  code: HoldCode;
}

export type ResolvedSearch = Search & { state: ResolutionState };

const PAGE = 500;

/** Oldest first. @throws Problem `not-found` */
export async function showConflicts(
  showing: Showing,
  search: ResolvedSearch,
): Promise<Page<ShownConflict>> {
  return await page(showing, search, "conflict", (row, now) => {
    const { body, ...entry } = decodedAs("conflict", row.bytes);
    const end = row.end === null ? undefined : decodedAs("conflict_resolved", row.end);
    return { ...shown(row, { ...entry, jws: body.jws, now }, end), stands: body.stands };
  });
}

/** Oldest first. @throws Problem `not-found` */
export async function showHolds(
  showing: Showing,
  search: ResolvedSearch,
): Promise<Page<ShownHold>> {
  return await page(showing, search, "hold", (row, now) => {
    const { body, ...entry } = decodedAs("hold", row.bytes);
    const end = row.end === null ? undefined : decodedAs("hold_resolved", row.end);
    return { ...shown(row, { ...entry, jws: body.jws, now }, end), code: body.code };
  });
}

async function page<K extends Resolved, Item extends Shown<K>>(
  { clock, sql }: Showing,
  { log, visible, after = -1n, state }: ResolvedSearch,
  kind: K,
  show: (row: ResolvedEntry, now: number) => Item,
): Promise<Page<Item>> {
  return await snapshot(sql, async (tx) => {
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const found = await readResolved(tx, log, kind, { after, limit: PAGE, state });
    const items = found.map((row) => show(row, clock.now()));
    const seen = items.filter(({ report }) => {
      return visible === undefined || visible.includes(BigInt(report.job.root_namespace_id));
    });
    const last = found.length < PAGE ? undefined : found.at(-1);
    return { ...asOf(listed), items: seen, ...(last && { next: String(last.index) }) };
  });
}

interface End<O> {
  index: bigint;
  at: string;
  body: { by: string; outcome: O; reason: string; ticket: string };
}

function shown<O>(
  { index, leaf }: ResolvedEntry,
  { at, jws, now }: { at: string; jws: string; now: number },
  end: End<O> | undefined,
) {
  const until = end === undefined ? now : epochMs(end.at);
  return {
    index: String(index),
    at,
    leaf: encodeBase64(leaf),
    age_ms: String(Math.max(0, until - epochMs(at))),
    ...reportOf(jws),
    ...(end !== undefined && { resolution: resolutionOf(end) }),
  };
}

function resolutionOf<O>({ at, body, index }: End<O>) {
  const { by, outcome, reason, ticket } = body;
  return { index: String(index), at, by, outcome, reason, ticket };
}
