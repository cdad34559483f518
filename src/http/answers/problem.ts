/** Problem documents (RFC 9457) with all members that any of them has. */
import { z } from "zod";
import { BODY, HoldCode } from "../../core/entry.ts";
import { PROBLEMS, type ProblemCode } from "../../core/problem.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  LogId,
  MonthText,
  NonEmptyText,
  Tracking,
} from "../../core/unit.ts";

export const CODES = Object.keys(PROBLEMS) as ProblemCode[];

/** `internal` is nobody's fault but ours, so it is in no table; its `id` finds it in our log. */
export type AnyCode = ProblemCode | "internal";

export const Problem = z.strictObject({
  type: z.url(),
  title: z.string(),
  status: z.int().min(400).max(599),
  code: z.enum([...CODES, "internal"]),
  /** Of a request: what does not have the documented shape; and of these what the shape has no member for, or not so. */
  members: z.array(z.string()).exactOptional(),
  unknown: z.array(z.string()).exactOptional(),
  not_allowed: z.array(z.string()).exactOptional(),
  member: z.string().exactOptional(),
  /** Of a report: the same as in a batch's result. */
  log: LogId.exactOptional(),
  digest: HashText.exactOptional(),
  counter: IntegerText.exactOptional(),
  index: IntegerText.exactOptional(),
  leaf: HashText.exactOptional(),
  receipt: BODY.hold.shape.jws.exactOptional(),
  /** Of an entry that may not be written. */
  kind: z.string().exactOptional(),
  at: InstantText.exactOptional(),
  effective_from: InstantText.exactOptional(),
  uuid: NonEmptyText.exactOptional(),
  tracking: Tracking.exactOptional(),
  name: z.string().exactOptional(),
  text: z.string().exactOptional(),
  stands: IntegerText.exactOptional(),
  next: MonthText.exactOptional(),
  /** Of a correction: what nothing was charged of. */
  namespace_id: IntegerText.exactOptional(),
  project_id: z.union([IntegerText, z.literal("")]).exactOptional(),
  usage_month: MonthText.exactOptional(),
  /** Of a held report: why it cannot be rated. */
  reason: HoldCode.exactOptional(),
  /** Of a request: members that are not there. Of a month: what it waits for, and the entry that closed it. */
  missing: z.array(z.string()).exactOptional(),
  closed: IntegerText.exactOptional(),
  /** Of an export that could not be made: why. */
  error: NonEmptyText.exactOptional(),
  /** Of an acknowledgement that goes backwards: how far the consumer's newest one reaches. */
  up_to: IntegerText.exactOptional(),
  /** Of an acknowledgement: the month that has not begun. */
  billing_month: MonthText.exactOptional(),
  /** Of 429, as its header says. */
  retry_after_s: IntegerText.exactOptional(),
  /** Of an unexpected error. */
  id: z.uuid().exactOptional(),
});

export function statusOf(code: AnyCode): number {
  return code === "internal" ? 500 : PROBLEMS[code][0];
}

const problems = new Map<string, z.ZodType>();

/** Of one status, with those of its codes that a route can give: the same shape for all routes that give the same. */
export function problemOf(status: number, codes: readonly AnyCode[]): z.ZodType {
  const name = `${status} ${codes}`;
  const shape = problems.get(name) ?? narrowed(status, codes);
  problems.set(name, shape);
  return shape;
}

function narrowed(status: number, codes: readonly AnyCode[]): z.ZodType {
  const narrowing = z.strictObject({ status: z.literal(status), code: z.enum(codes) });
  // zod refuses a member of an intersection that both sides refuse.
  return z.intersection(Problem, narrowing);
}
