/**
 * What JSON.parse, or a shape that its value is held against, hides: of a member that is named twice the
 * last is kept here, the first elsewhere; one named `__proto__` is dropped, or taken for an order.
 */

/** Strings whole, so that no brace or comma inside one is taken for structure. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;

/** @param text valid JSON */
export function hidesMember(text: string): boolean {
  /** The names of each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let last = "";
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === "{") open.push(new Set());
    else if (token === "[") open.push(undefined);
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      const names = open.at(-1);
      const name: string = JSON.parse(last);
      if (name === "__proto__" || names?.has(name)) return true;
      names?.add(name);
    }
    last = token;
  }
  return false;
}
