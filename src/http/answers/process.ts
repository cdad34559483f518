/** What a process says about itself. */
import { z } from "zod";
import { IntegerText, NonEmptyText } from "../../core/unit.ts";
import type * as ready from "../../flow/ready.ts";
import { exactly } from "./exactly.ts";
import { CODES } from "./problem.ts";

const Count = z.int().nonnegative();

export const Liveness = z.strictObject({ live: z.literal(true), version: NonEmptyText });

export const Readiness = exactly<ready.Readiness>()(
  z.strictObject({
    ready: z.boolean(),
    database: z.string().regex(/^[a-z]+(?:-[a-z]+)*$/),
    refused: z.partialRecord(z.enum(CODES), Count),
    seal: z.strictObject({ logs: Count, entries: IntegerText, lag_ms: z.number().nonnegative() }),
    rollups: z.enum(["current", "failing"]),
    replication: z.enum(["synchronous", "missing", "unknown"]),
    anchors: z.strictObject({
      state: z.enum(["none", "witnessed", "locked", "witness-ahead", "witness-conflict"]),
      logs: Count,
      lag_ms: z.number().nonnegative(),
      unpublished: z.strictObject({ logs: Count, lag_ms: z.number().nonnegative() }),
    }),
    signer: z.enum(["available", "unavailable"]),
    redis: z.enum(["up", "away", "none"]),
    reviews: z.strictObject({ overdue: Count }),
    environment: z.strictObject({ drift: Count }),
    verification: z.strictObject({ failed: Count }),
    exports: z.strictObject({ failing: Count, undelivered: Count }),
  }),
);

export const Metrics = z.string().regex(/^# HELP /);

export const Document = z.strictObject({
  openapi: z.literal("3.1.0"),
  info: z.strictObject({ title: z.string(), version: z.string(), summary: z.string() }),
  paths: z.record(z.string().startsWith("/"), z.record(z.string(), z.unknown())),
  components: z.record(z.string(), z.unknown()),
});
