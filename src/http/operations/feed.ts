/** What the Customers Portal is told to bill, and what it says that it has. */
import { AckReceipt, Feed, FeedLines } from "../answers/feed.ts";
import { json, type Operation, WRITING, written } from "./operation.ts";
import { FeedSearch, LogAcknowledgement } from "./shapes.ts";

/** What the database is not sealed to is asked of the archive. */
const REACHING = ["beyond-checkpoint", "log-behind", "archive-unavailable"] as const;

export const FEED = {
  "GET /v1/feed": {
    summary:
      "Events of sealed entries from a cursor on (CloudEvents 1.0); waits for them for up to 30 seconds",
    query: FeedSearch,
    success: { 200: { ...json(Feed), "application/x-ndjson": FeedLines } },
    problems: REACHING,
  },
  "POST /v1/feed/ack": {
    summary: "What a consumer has of the feed, by billing month; each that differs is a break",
    body: json(LogAcknowledgement),
    success: written(AckReceipt),
    problems: [
      ...(["ack-backwards", "consumer-taken", "too-many-consumers", "approval-required"] as const),
      ...(["unknown-month", "too-many-differ"] as const),
      ...REACHING,
      ...WRITING,
    ],
  },
} as const satisfies Readonly<Record<string, Operation>>;
