/** The form of an operation, and what many of them share. */
import type { z } from "zod";
import type { ProblemCode } from "../../core/problem.ts";
import { Jws } from "./shapes.ts";

/** By media type. */
export type Content = Readonly<Record<string, z.ZodType>>;

export interface Operation {
  summary: string;
  query?: z.ZodType;
  body?: Content;
  /** By status; problems are not among them. */
  success: Readonly<Record<number, Content>>;
  /** Beside those that all routes, or all routes with a token or a body, have. */
  problems: readonly ProblemCode[];
}

export const json = (shape: z.ZodType): Content => ({ "application/json": shape });
export const text = (shape: z.ZodType): Content => ({ "text/plain": shape });
export const jose: Content = { "application/jose": Jws };
/** Written now, or standing already. */
export const written = (shape: z.ZodType) => ({ 201: json(shape), 200: json(shape) });

export const WRITING = [
  "not-found",
  "log-behind",
  "archive-unavailable",
  "signer-unavailable",
] as const satisfies ProblemCode[];

/** What is served is verified first, by the keys that the log is signed with. */
export const SERVING = [
  "archive-unavailable",
  "signer-unavailable",
] as const satisfies ProblemCode[];
/** Besides those of every route with a token. */
export const PROVING = ["beyond-checkpoint", ...SERVING] as const satisfies ProblemCode[];
