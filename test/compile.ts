/**
 * Compiles what tests start as programs of their own, as users run them; from source each start would cost
 * a compiler's start besides. Run by vitest before the first test file; nothing to do after `npm run check`.
 */
import { execFileSync } from "node:child_process";

export function setup(): void {
  const root = new URL("..", import.meta.url).pathname;
  execFileSync(`${root}node_modules/.bin/tsc`, ["-b"], { cwd: root, stdio: "inherit" });
}
