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
 * That JSON.parse, and what then looks through its value, cost no more than a copy of the text: 4 MiB of
 * brackets would stop the process for seconds and take 900 MB. Says nothing about whether it is JSON.
 *
 * @param lettersMax escapes, and letters that are outside of strings; of each string one
 */
export function isCheap(text: string, lettersMax: number): boolean {
  let depth = 0;
  let letters = 0;
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
    } else if (letter === OPEN_OBJECT || letter === OPEN_ARRAY) depth += 1;
    else if (letter === CLOSE_OBJECT || letter === CLOSE_ARRAY) depth -= 1;
    else if (letter === BACKSLASH) return false; // outside of a string there is none
    if (depth > DEPTH_MAX || letters > lettersMax) return false;
  }
  return true;
}

/** Where it is at `from` or behind; past the end if nowhere. */
function nextOf(text: string, letter: string, from: number): number {
  const at = text.indexOf(letter, from);
  return at === -1 ? text.length : at;
}

/**
 * Letter by letter: a pattern over all tokens takes several times as long as JSON.parse.
 * @param text valid JSON
 */
export function hidesMember(text: string): boolean {
  /** The names of each open object; undefined for an array. */
  const open: (Set<string> | undefined)[] = [];
  let start = 0;
  let end = 0;
  for (let i = 0; i < text.length; i += 1) {
    const letter = text.charCodeAt(i);
    if (letter === QUOTE) {
      // Whole, so that no brace or comma inside is taken for structure.
      start = i;
      end = endOfString(text, i);
      i = end;
    } else if (letter === OPEN_OBJECT) open.push(new Set());
    else if (letter === OPEN_ARRAY) open.push(undefined);
    else if (letter === CLOSE_OBJECT || letter === CLOSE_ARRAY) open.pop();
    else if (letter === COLON) {
      const names = open.at(-1);
      const inside = text.slice(start + 1, end);
      const name: string = inside.includes("\\") ? JSON.parse(`"${inside}"`) : inside;
      if (name === "__proto__" || names?.has(name)) return true;
      names?.add(name);
    }
  }
  return false;
}

/** Where the quotation mark is that ends the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end;
}

function isEscaped(text: string, at: number): boolean {
  let before = at - 1;
  while (text.charCodeAt(before) === BACKSLASH) before -= 1;
  return (at - before) % 2 === 0;
}
