/** The JSON that is signed and hashed: RFC 8785 canonical, without numbers and without null. */
import { decodeUtf8, isWellFormed } from "./text.ts";

export type Json = string | boolean | Json[] | { [name: string]: Json };

/** Text that is its own quotation: the common case, for which it is worth five times the speed. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Deeper values are refused, so that the verdict never depends on how much stack a host has. */
const DEPTH_MAX = 32;

/**
 * RFC 8785 text of a value. Throws on all that `Json` does not name: numbers, null, undefined, class
 * instances, lone surrogates, nesting past 32; and on the name `__proto__`, which some objects take
 * for an order.
 */
export function canonical(value: Json): string {
  return write(value, DEPTH_MAX);
}

/**
 * The value of canonical UTF-8 JSON; undefined unless writing it again gives the same bytes. That one
 * comparison refuses duplicate members, spaces, other orders and escapes, numbers, a byte order mark.
 */
export function parseCanonical(bytes: Uint8Array): Json | undefined {
  const text = decodeUtf8(bytes);
  if (text === undefined) return undefined;
  try {
    const value: Json = JSON.parse(text);
    return canonical(value) === text ? value : undefined;
  } catch {
    return undefined; // no JSON, or JSON that has no canonical form here
  }
}

function write(value: Json, depth: number): string {
  if (typeof value === "string") return quoted(value);
  if (typeof value === "boolean") return value ? "true" : "false";
  if (depth === 0) throw new Error("canonical: nested too deep");
  if (Array.isArray(value)) {
    let items = "";
    for (const item of value) items += `${items && ","}${write(item, depth - 1)}`;
    return `[${items}]`;
  }
  if (!isPlain(value)) throw new Error("canonical: not a string, boolean, array or plain object");
  let members = "";
  for (const name of sortedNames(value)) {
    if (name === "__proto__") throw new Error("canonical: a member named __proto__");
    members += `${members && ","}${quoted(name)}:${write(value[name] as Json, depth - 1)}`;
  }
  return `{${members}}`;
}

/** By UTF-16 code units, as RFC 8785 §3.2.3 asks; what was read from canonical text is in order. */
function sortedNames(value: object): string[] {
  const names = Object.keys(value);
  const inOrder = names.every((name, i) => i === 0 || (names[i - 1] ?? "") < name);
  return inOrder ? names : names.sort();
}

/** ECMAScript's own quoting of well-formed text is that of RFC 8785 §3.2.2.2. */
function quoted(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`;
  if (!isWellFormed(text)) throw new Error("canonical: a lone surrogate");
  return JSON.stringify(text);
}

/** A Date or a Map would otherwise pass as an object without members. */
function isPlain(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
