/** Members of paths and query strings. */
import type { z } from "zod";
import { Problem } from "../core/problem.ts";
import { IntegerText, LogId } from "../core/unit.ts";
import { assertLog, assertNamespace, type Caller } from "./access.ts";
import { parsed } from "./body.ts";
import { PageSearch } from "./operations/shapes.ts";
import type { Ask } from "./router.ts";

/** @throws Problem `not-found`: what cannot be the name of anything is missing like anything else */
export function member<T extends z.ZodType>(shape: T, said: unknown): z.infer<T> {
  const { data, success } = shape.safeParse(said);
  if (!success) throw new Problem("not-found");
  return data;
}

/** The path's log. @throws Problem `not-found` for one that the caller may not see */
export function logOf({ param }: Ask, caller: Caller): string {
  const log = member(LogId, param("log"));
  assertLog(caller, log);
  return log;
}

/** The path's namespace and its log. @throws Problem `not-found` for those that the caller may not see */
export function namespaceOf(ask: Ask, caller: Caller): { log: string; namespace: string } {
  const log = logOf(ask, caller);
  const namespace = member(IntegerText, ask.param("namespace"));
  assertNamespace(caller, log, namespace);
  return { log, namespace };
}

export function pageOf(ask: Ask): { after?: bigint } {
  const { after } = parsed(PageSearch, ask.query());
  return after === undefined ? {} : { after: BigInt(after) };
}
