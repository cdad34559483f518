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

/** Without what is about the connection that they came by. */
export function endToEnd(headers: RawHeaders): string[] {
  const named = valuesOf(headers, "connection").flatMap((value) =>
    value.split(",").map((name) => name.trim().toLowerCase()),
  );
  const dropped = new Set([...HOP_BY_HOP, ...named]);
  return pairs(headers)
    .filter(([name]) => !dropped.has(name.toLowerCase()))
    .flat();
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
