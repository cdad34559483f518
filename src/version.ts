/** The version in package.json, which stands above `src` in a checkout and above `dist/src` when compiled. */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const VERSION: string = read(dirname(fileURLToPath(import.meta.url)));

function read(folder: string): string {
  try {
    const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    return String(version);
  } catch (error) {
    const parent = dirname(folder);
    if (parent === folder)
      throw new Error("version: no package.json above the code", { cause: error });
    return read(parent);
  }
}
