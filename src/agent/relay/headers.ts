/** Headers as they came: names, order, case and repetitions kept, as `rawHeaders` has them. */

/** RFC 9110 §7.6.1. They are about one connection, and each side of the relay has its own. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

export type RawHeaders = readonly string[];

/**
 * Without what is about the connection that they came by. Content-Length stays, whatever Connection
 * names: content whose length was taken away is read as the next message.
 */
export function endToEnd(headers: RawHeaders): string[] {
  const named = valuesOf(headers, "connection").flatMap((value) =>
    value.split(",").map((name) => name.trim().toLowerCase()),
  );
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  dropped.delete("content-length");
  return without(headers, dropped);
}

/** @param names in small letters */
export function without(headers: RawHeaders, names: ReadonlySet<string>): string[] {
  return pairs(headers)
    .filter(([name]) => !names.has(name.toLowerCase()))
    .flat();
}

const LENGTH = /^(?:0|[1-9][0-9]{0,14})$/;

/**
 * Bytes of a message's content: 0 where nothing is said of it, Infinity for chunks. Undefined for what
 * another parser may read in another way (RFC 9112 §6.1, §11.2), also where Node's reads it.
 */
export function contentLength(message: {
  rawHeaders: RawHeaders;
  httpVersion: string;
}): number | undefined {
  const lengths = valuesOf(message.rawHeaders, "content-length");
  const codings = valuesOf(message.rawHeaders, "transfer-encoding");
  const [length = "0", ...moreLengths] = lengths;
  const [coding, ...moreCodings] = codings;
  if (moreLengths.length > 0 || moreCodings.length > 0) return undefined;
  if (coding === undefined) return LENGTH.test(length) ? Number(length) : undefined;
  const isChunked = coding.toLowerCase() === "chunked" && message.httpVersion === "1.1";
  return isChunked && lengths.length === 0 ? Number.POSITIVE_INFINITY : undefined;
}

/** In place of all of that name, at the place of the first of them; else at the end. */
export function withHeader(headers: RawHeaders, name: string, value: string): string[] {
  const all = pairs(headers);
  const isIt = ([other]: readonly [string, string]): boolean =>
    other.toLowerCase() === name.toLowerCase();
  const at = all.findIndex(isIt);
  const others = all.filter((pair) => !isIt(pair));
  others.splice(at === -1 ? others.length : at, 0, [name, value]);
  return others.flat();
}

export function valuesOf(headers: RawHeaders, name: string): string[] {
  return pairs(headers)
    .filter(([other]) => other.toLowerCase() === name)
    .map(([, value]) => value);
}

function pairs(headers: RawHeaders): [string, string][] {
  return headers.flatMap((name, i): [string, string][] =>
    i % 2 === 0 ? [[name, headers[i + 1] ?? ""]] : [],
  );
}
