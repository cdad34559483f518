/** What the feed's consumers have acknowledged, and the differences that follow from it (docs/feed.md). */
import type { Body } from "../../src/core/entry.ts";
import type { EventCounts } from "./counts.ts";

/** What a consumer counts more than the log; amounts in 10⁻⁶ compute-milliseconds. */
export interface Differing {
  events: bigint;
  amount: bigint;
}

export interface Consumer {
  /** Who acknowledged by this name first. */
  by: string;
  upTo: bigint;
  /** By billing month, where there is a difference. */
  differing: ReadonlyMap<string, Differing>;
  /** By billing month, its newest. */
  breaks: Map<string, PortalBreak>;
}

export interface PortalBreak {
  index: bigint;
  stands: "open" | "accepted" | "ended";
}

/** What must stand right behind an acknowledgement, but for salts. */
export type Follower =
  | { kind: "break"; body: Omit<Body<"break">, "salt"> }
  | { kind: "break_resolved"; body: Omit<Body<"break_resolved">, "salt"> };

export interface Feed {
  counts: EventCounts;
  consumers: Map<string, Consumer>;
  /** Of the newest acknowledgement: whose, where, and what is still to stand behind it. */
  newest: Consumer | undefined;
  index: bigint;
  due: Follower[];
  /** By index, those that nothing has ended. */
  open: Map<bigint, PortalBreak>;
}

export function startFeed(counts: EventCounts): Feed {
  const none = { newest: undefined, index: 0n, due: [] };
  return { counts, consumers: new Map(), open: new Map(), ...none };
}
