/**
 * What the tests need besides Node and npm's packages: Chromium. Installed where this machine's package
 * manager can do so without asking; else it is said what to run, and the tests do not start.
 */
import { spawnSync } from "node:child_process";
import { findChromium } from "./chromium.ts";

type Command = readonly [program: string, ...args: string[]];

const APT: readonly Command[] = [
  ["apt-get", "update"],
  ["apt-get", "install", "--yes", "--no-install-recommends", "chromium"],
];
const BREW: readonly Command[] = [["brew", "install", "--cask", "chromium"]];

const ADVICE = `The tests drive a real Chromium, and there is none here. Install it, and run them again:
  Debian:  sudo apt-get update && sudo apt-get install chromium
  Ubuntu:  sudo snap install chromium
  macOS:   brew install --cask chromium
or say where it is: CHROMIUM=/path/to/chromium npm test
`;

if (findChromium() === undefined) install();

function install(): void {
  const commands = installers();
  for (const [program, ...args] of commands) {
    const { status } = spawnSync(program, args, { stdio: "inherit" });
    if (status !== 0) break; // what is missing is said below
  }
  if (findChromium() !== undefined) return;
  process.stderr.write(ADVICE);
  process.exitCode = 1;
}

/** What may be run without a password. */
function installers(): readonly Command[] {
  if (has("brew")) return BREW;
  if (!has("apt-get")) return [];
  if (process.getuid?.() === 0) return APT;
  if (!has("sudo") || spawnSync("sudo", ["--non-interactive", "true"]).status !== 0) return [];
  return APT.map((command): Command => ["sudo", "--non-interactive", ...command]);
}

function has(program: string): boolean {
  return spawnSync("which", [program]).status === 0;
}
