/** What JSON.parse hides: of a member that is named twice it keeps the last, other readers the first. */

/** Strings whole, so that no brace or comma inside one is taken for structure. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;

/** @param text valid JSON */
export function repeatsMember(text: string): boolean {
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
      if (names?.has(name)) return true;
      names?.add(name);
    }
    last = token;
  }
  return false;
}
