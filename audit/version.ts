/** The version in package.json, which stands above `audit` in a checkout and above `dist` when compiled. */
import { existsSync, readFileSync } from "node:fs";

const PLACES = ["../package.json", "../../package.json"];

export function readVersion(): string {
  const place = PLACES.map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url));
  if (place === undefined) throw new Error("version: no package.json above the code");
  return String(JSON.parse(readFileSync(place, "utf8")).version);
}
