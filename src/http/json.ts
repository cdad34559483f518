/**
 * What is asked of a text before and after JSON.parse. Before: that it can be parsed at little cost, since
 * anybody may send one. After: what JSON.parse, or a shape that its value is held against, hides: of a
 * member that is named twice the last is kept here, the first elsewhere; one named `__proto__` is dropped,
 * or taken for an order.
 */

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY] = [0x7b, 0x7d, 0x5b, 0x5d];

/** Every shape is shallower. */
const DEPTH_MAX = 8;

/**
 * How many members the text names, where JSON.parse, and what then looks through its value, cost no more than
 * a copy of it: 4 MiB of brackets would stop the process for seconds and take 900 MB. Says nothing about
 * whether it is JSON.
 *
 * @param lettersMax escapes, and letters that are outside of strings; of each string one
 * @returns undefined where it would cost more
 */
export function membersNamed(text: string, lettersMax: number): number | undefined {
  let depth = 0;
  let letters = 0;
  let members = 0;
  let slash = nextOf(text, "\\", 0);
  for (let i = 0; i < text.length; i += 1) {
    const letter = text.charCodeAt(i);
    letters += 1;
    if (letter === QUOTE) {
      // Searched for, not walked to: almost all of a batch is inside its strings.
      let end = nextOf(text, '"', i + 1);
      while (slash < end && letters <= lettersMax) {
        letters += 1;
        if (slash + 1 === end) end = nextOf(text, '"', end + 1);
        slash = nextOf(text, "\\", slash + 2);
      }
      i = end;
    } else if (letter === COLON) members += 1;
    else if (letter === OPEN_OBJECT || letter === OPEN_ARRAY) depth += 1;
    else if (letter === CLOSE_OBJECT || letter === CLOSE_ARRAY) depth -= 1;
    else if (letter === BACKSLASH) return undefined; // outside of a string there is none
    if (depth > DEPTH_MAX || letters > lettersMax) return undefined;
  }
  return members;
}

/** Where it is at `from` or behind; past the end if nowhere. */
function nextOf(text: string, letter: string, from: number): number {
  const at = text.indexOf(letter, from);
  return at === -1 ? text.length : at;
}

/**
 * How many members a value has, in all depths: fewer than its text names where one is named twice.
 * @param value of JSON.parse
 * @returns NaN where one is named `__proto__`
 */
export function membersKept(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  let members = 0;
  if (Array.isArray(value)) {
    for (const each of value) members += membersKept(each);
    return members;
  }
  for (const [name, each] of Object.entries(value)) {
    members += name === "__proto__" ? Number.NaN : 1 + membersKept(each);
  }
  return members;
}
