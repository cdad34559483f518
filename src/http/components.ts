/** Names for all that is answered, and for what it is made of, as the OpenAPI document has them. */
import { z } from "zod";
import { Report } from "../core/report.ts";
import {
  ComputeMsText,
  FractionText,
  HashText,
  InstantText,
  IntegerText,
  Kid,
  LogId,
  MonthText,
  Tracking,
} from "../core/unit.ts";
import { Conflict, ConflictPage, Hold, HoldPage } from "./answers/holds.ts";
import { Key, KeyPage, Log, LogKey, LogKeyList, Logs } from "./answers/listings.ts";
import { Checkpoint, Checkpoints, Consistency, Inclusion, Tile } from "./answers/logs.ts";
import { Problem } from "./answers/problem.ts";
import { Document, Liveness, Metrics, Readiness } from "./answers/process.ts";
import { KeptPromise } from "./answers/promises.ts";
import {
  Approval,
  OpenedProposal,
  Proposal,
  ProposalPage,
  SourceReceipt,
} from "./answers/proposals.ts";
import {
  Decision,
  Decisions,
  HeardHeartbeat,
  Heartbeats,
  NeverRan,
  Stop,
  StopPage,
} from "./answers/quotas.ts";
import {
  AttestationReceipt,
  ClaimReceipt,
  EnrolmentReceipt,
  KeyReceipt,
  LogKeyReceipt,
  LogReceipt,
  Receipt,
  VisibilityReceipt,
} from "./answers/receipts.ts";
import {
  AcceptedReport,
  Answered,
  Batch,
  DuplicateReport,
  HeldReport,
  Result,
} from "./answers/reports.ts";
import {
  ExplainedBuild,
  Explanation,
  Figures,
  Rating,
  Usage,
  UsageRow,
  UsageTable,
} from "./answers/usages.ts";
import { Jws } from "./operations/shapes.ts";

const SHAPES = {
  AcceptedReport,
  Answered,
  Approval,
  AttestationReceipt,
  Batch,
  Checkpoint,
  Checkpoints,
  ClaimReceipt,
  Conflict,
  ConflictPage,
  Consistency,
  Decision,
  Decisions,
  Document,
  DuplicateReport,
  EnrolmentReceipt,
  ExplainedBuild,
  Explanation,
  Figures,
  HeardHeartbeat,
  Heartbeats,
  HeldReport,
  Hold,
  HoldPage,
  Inclusion,
  KeptPromise,
  Key,
  KeyPage,
  KeyReceipt,
  Liveness,
  Log,
  LogKey,
  LogKeyList,
  LogKeyReceipt,
  LogReceipt,
  Logs,
  Metrics,
  NeverRan,
  OpenedProposal,
  Problem,
  Proposal,
  ProposalPage,
  Rating,
  Readiness,
  Receipt,
  Report,
  Result,
  SourceReceipt,
  Stop,
  StopPage,
  Tracking,
  Usage,
  UsageRow,
  UsageTable,
  VisibilityReceipt,
};

/** What a pattern does not say, or nobody wants to read out of one. */
const SCALARS = {
  ComputeMs: [ComputeMsText, "Compute-milliseconds with six decimals"],
  Fraction: [FractionText, "A reduced fraction a/b"],
  Hash: [HashText, "32 bytes, padded base64"],
  Instant: [InstantText, "RFC 3339, UTC, with exactly three decimals"],
  Integer: [IntegerText, "0 to 2^63-1, as text: a number would lose digits"],
  Jws: [Jws, "One compact JWS, signed with Ed25519"],
  Kid: [Kid, "RFC 7638 thumbprint of an Ed25519 key: 32 bytes, base64url"],
  LogId: [LogId, "A log's id: 32 lowercase hex digits"],
  Month: [MonthText, "The first day of a UTC month"],
  Tile: [Tile, "Bytes: hashes of 32, or entries with their length in two before each"],
} as const satisfies Record<string, readonly [z.ZodType, string]>;

/** zod's own registry, so that what is said of a shape beside the shape counts too. */
const registry = z.globalRegistry;
for (const [id, shape] of Object.entries(SHAPES)) registry.add(shape, { id });
for (const [id, [shape, description]] of Object.entries(SCALARS)) {
  registry.add(shape, { id, description });
}

const COMPONENTS = "#/components/schemas/";
/** As callers write it, before defaults and transformations. */
const AS_SENT = { io: "input", metadata: registry } as const;

/** By name, for `components.schemas`. */
export function componentSchemas(): Record<string, object> {
  const uri = (id: string): string => COMPONENTS + id;
  const { schemas } = z.toJSONSchema(registry, { ...AS_SENT, uri, override: opened });
  return Object.fromEntries(Object.entries(schemas).map(([id, schema]) => [id, bare(schema)]));
}

/** With a reference wherever something has a name. */
export function requestSchema(shape: z.ZodType): JsonSchema {
  return referring(shape, z.toJSONSchema(shape, AS_SENT));
}

/** Formed once: hundreds of answers share some dozens of shapes, and to form them all would delay each start. */
const answers = new WeakMap<z.ZodType, JsonSchema>();

/** The same, but open: unknown members of a request are refused, an answer may come to have more. */
export function answerSchema(shape: z.ZodType): JsonSchema {
  const params = { ...AS_SENT, override: opened };
  const schema = answers.get(shape) ?? referring(shape, z.toJSONSchema(shape, params));
  answers.set(shape, schema);
  return schema;
}

type JsonSchema = z.core.JSONSchema.BaseSchema;

function opened({ jsonSchema }: { jsonSchema: JsonSchema }): void {
  if (jsonSchema.additionalProperties === false) delete jsonSchema.additionalProperties;
}

/** Without the definitions that zod adds: they are the components. */
function referring(shape: z.ZodType, schema: JsonSchema): JsonSchema {
  const id = registry.get(shape)?.id;
  if (id !== undefined) return { $ref: COMPONENTS + id };
  return JSON.parse(JSON.stringify(bare(schema)).replaceAll("#/$defs/", COMPONENTS));
}

function bare(schema: JsonSchema): JsonSchema {
  const { $schema: _, $id: __, $defs: ___, ...rest } = schema;
  return rest;
}
