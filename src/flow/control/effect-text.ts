/**
 * What a proposal would do, as it stands on the log: within its bound, whatever it takes the place of. A
 * mapping or a card that is too long to be shown must not be one that nobody can ever replace.
 */
import { type Content, isSayable } from "../../core/approval.ts";
import { type Action, CONTENT_CHARS_MAX } from "../../core/control.ts";
import { canonical, type Json } from "../../core/json.ts";
import { encodeBase64, encodeUtf8, utf8Length } from "../../core/text.ts";
import { sha256 } from "../report/signature.ts";
import { type Asked, EFFECTS } from "./effects.ts";
import type { Deciding } from "./rules.ts";

/** Of all lines that are shown of an effect that is too long, with what else is said in their place. */
const ROOM = (CONTENT_CHARS_MAX * 3) / 4;

/** Canonical JSON. @throws Problem of what cannot be asked for */
export async function effectText<A extends Action>(
  deciding: Deciding,
  action: A,
  content: Content,
): Promise<string> {
  // The shape of the action has let the content in.
  const effect = { ...(await EFFECTS[action](deciding, content as Asked<A>)) };
  return canonical(isSayable(effect) ? effect : shortened(effect));
}

/** Of each member how many lines it has, the digest of all, and the first, as many as there is room for. */
export function shortened(effect: Content): Content {
  const members = Object.entries(effect);
  const room = ROOM / members.length;
  return Object.fromEntries(members.map(([name, value]) => [name, firstOf(value, room)]));
}

function firstOf(value: Json, room: number): Json {
  if (typeof value !== "object") return value;
  const lines: Json[] = Array.isArray(value) ? value : Object.entries(value);
  const first: Json[] = [];
  let left = room;
  for (const line of lines) {
    left -= utf8Length(canonical(canonical(line)));
    if (left < 0) break;
    first.push(line);
  }
  const digest = encodeBase64(sha256(encodeUtf8(canonical(value))));
  return { count: String(lines.length), first, sha256: digest };
}
