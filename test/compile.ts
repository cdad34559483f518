/**
 * Compiles what tests start as programs of their own, as users run them; from source each start would cost
 * a compiler's start besides. Run by vitest before the first test file; nothing to do after `npm run check`.
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const ROOT = new URL("..", import.meta.url);

export function setup(): void {
  const cwd = fileURLToPath(ROOT);
  // Types are for `npm run check`: here, as in every file that vitest reads, they are only taken away.
  execFileSync(`${cwd}node_modules/.bin/tsc`, ["-b", "--noCheck"], { cwd, stdio: "inherit" });
}

/** @param source a module of this repository; the path of what it was compiled to */
export function compiled(source: URL): string {
  const path = source.href.slice(ROOT.href.length).replace(/\.ts$/, ".js");
  return fileURLToPath(new URL(`dist/${path}`, ROOT));
}
