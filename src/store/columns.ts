/**
 * Columns of a batch as the text of PostgreSQL arrays, for `unnest`. The general array serialiser of
 * postgres.js costs several times as much, and this is the inner loop of every commit.
 */

/** Integers, instants, words: none empty, nothing of `{ } " , \` nor white space, and not `null`. */
export function plainColumn(values: readonly (string | bigint | undefined)[]): string {
  let text = "";
  for (const value of values) text += `${text && ","}${value === undefined ? "null" : value}`;
  return `{${text}}`;
}

/** Any text; also an empty one, and the word null. */
export function textColumn(values: readonly (string | undefined)[]): string {
  let text = "";
  for (const value of values) {
    text += text && ",";
    text += value === undefined ? "null" : `"${value.replace(/["\\]/g, "\\$&")}"`;
  }
  return `{${text}}`;
}

/** Bytes, none empty, as base64 for `decode(…, 'base64')`: a third smaller than bytea's own hex. */
export function bytesColumn(values: readonly Uint8Array[]): string {
  let text = "";
  for (const value of values) {
    text += text && ",";
    text += Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64");
  }
  return `{${text}}`;
}

/**
 * Hashes end to end, as the base64 of one bytea that `substring` cuts up again, like `packedText`:
 * taking an array of long texts apart costs the server as much as all the rest of an insert.
 */
export function packed(hashes: readonly Uint8Array[]): string {
  return Buffer.concat(hashes).toString("base64");
}

/** Bytes that are UTF-8 without NUL, end to end as they are, for `convert_to(…, 'UTF8')`. */
export function packedText(values: readonly Uint8Array[]): string {
  return Buffer.concat(values).toString("utf8");
}

/** Where each byte string begins in what is packed, from 1 as `substring` counts. */
export function startColumn(values: readonly Uint8Array[]): string {
  let text = "";
  let start = 1;
  for (const { length } of values) {
    text += `${text && ","}${start}`;
    start += length;
  }
  return `{${text}}`;
}
