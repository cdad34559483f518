/** What an agent signed, read strictly. Whose key it must be, and whether it holds, is asked elsewhere. */
import type { z } from "zod";
import { parseCanonical } from "../../src/core/json.ts";
import { type CompactJws, readCompact } from "../../src/core/jws.ts";

export interface Statement<P> {
  jws: CompactJws;
  payload: P;
}

/** The statement, or the rule that its form breaks. */
export function readStatement<P>(
  text: string,
  typ: string,
  shape: z.ZodType<P>,
): Statement<P> | "jws-malformed" | "jws-payload" {
  const jws = readCompact(text);
  if (jws?.typ !== typ) return "jws-malformed";
  const payload = shape.safeParse(parseCanonical(jws.payload));
  return payload.success ? { jws, payload: payload.data } : "jws-payload";
}
