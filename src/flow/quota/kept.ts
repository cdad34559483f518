/** What live usage keeps, namespace by namespace: looked at from outside, and changed by nothing of that. */
import { Problem } from "../../core/problem.ts";
import type { Figures } from "../../core/quota/figures.ts";
import type { Command, Done, NamespaceKey } from "../../core/quota/live.ts";
import type { Asking } from "./ask.ts";
import type { Drift } from "./drift.ts";
import type { Ledger } from "./ledger.ts";
import type { Live } from "./standing.ts";

export interface Reconciling extends Asking {
  ledger: Ledger;
  live: Live;
}

/** Is told of each finding when it is repaired. */
export type Found = (drift: Drift) => void;

/** Namespaces of one read of the log. */
const PAGE = 500;
/** Namespaces asked at once: those who wait for decisions are asked for at the same time. */
const ABREAST = 8;

/** A size that no log has: figures of it are the glance's own, and nothing is kept. */
export const NEVER = 0n;

/** Looks and changes nothing: these figures are older than any. */
export function glance(now: number): Command {
  const figures: Figures = {
    ...{ asOf: NEVER, touched: -1n, from: 0, until: Number.MAX_SAFE_INTEGER },
    ...{ startBound: undefined, runBound: undefined, readAt: now, text: "" },
  };
  return { now, figures, since: 0n, settled: [], inspect: true, asks: [] };
}

export interface Looked {
  key: NamespaceKey;
  /** Epoch milliseconds. */
  at: number;
  /** Undefined: it does not hold at that time. */
  kept: Done | undefined;
}

/** Undefined: its server is away, and this process' copy is not what is compared. */
export async function look(
  { clock, live }: Reconciling,
  key: NamespaceKey,
): Promise<Looked | undefined> {
  const at = clock.now();
  const { answer, source } = await live.run(key, glance(at));
  if (source === "process" && live.state() !== "none") return undefined;
  return { key, at, kept: answer.kind === "done" ? answer : undefined };
}

/** One namespace that moves faster than it is read keeps nobody else waiting: it has its turn in the next round. */
export function later(error: unknown): undefined {
  if (!(error instanceof Problem && error.code === "busy")) throw error;
}

/** Pages of one log each; what comes twice is taken once. */
export async function* pages(
  walk: AsyncIterable<readonly NamespaceKey[]>,
): AsyncIterable<readonly NamespaceKey[]> {
  const seen = new Set<string>();
  const waiting = new Map<string, NamespaceKey[]>();
  for await (const keys of walk) {
    for (const key of keys) {
      const name = `${key.log}:${key.namespace}`;
      if (seen.has(name)) continue;
      seen.add(name);
      const page = waiting.get(key.log) ?? [];
      page.push(key);
      waiting.set(key.log, page);
      if (page.length < PAGE) continue;
      waiting.delete(key.log);
      yield page;
    }
  }
  yield* waiting.values();
}

/** All of them, so many at once. */
export async function abreast<T>(
  items: readonly T[],
  act: (item: T) => Promise<void>,
): Promise<void> {
  const left = items.values();
  const lanes = Array.from({ length: ABREAST }, async () => {
    for (const item of left) await act(item);
  });
  await Promise.all(lanes);
}
