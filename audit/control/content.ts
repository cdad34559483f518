/** Whether an entry is what its proposal asked for, letter by letter. */
import type { Action } from "../../src/core/control.ts";
import { BODY, type Body, type Kind } from "../../src/core/entry.ts";
import { canonical, type Json, parseCanonical } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";

/** What the service adds to what was asked for, as it could be. */
const ADDED = { approval: "0", by: "somebody", salt: encodeBase64(new Uint8Array(16)) };

/** Whether the text is the canonical JSON of a body of that kind without what the service adds. */
export function isContent(action: Action, text: string, at: string): boolean {
  const asked = parseCanonical(encodeUtf8(text));
  if (typeof asked !== "object" || Array.isArray(asked)) return false;
  if (Object.keys(ADDED).some((name) => name in asked)) return false;
  const filled = { effective_from: at, ...ADDED, ...asked };
  const shape = BODY[action];
  const members = Object.entries(filled).filter(([name]) => name in asked || name in shape.shape);
  return shape.safeParse(Object.fromEntries(members)).success;
}

/** A content without `effective_from` asks for it at once: with the entry, or a millisecond after. */
export function isAsked(content: string, body: Body<Kind>, at: string): boolean {
  const written: Record<string, Json> = { ...(body as Record<string, Json>) };
  for (const name of Object.keys(ADDED)) delete written[name];
  if (canonical(written) === content) return true;
  const { effective_from: from, ...rest } = written;
  const next = new Date(Date.parse(at) + 1).toISOString();
  return (from === at || from === next) && canonical(rest) === content;
}
