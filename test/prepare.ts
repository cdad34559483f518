/**
 * What the tests need besides Node and npm's packages: Chromium and redis-server. Installed where this
 * machine's package manager can do so without asking; else it is said what to run, and the tests do not start.
 */
import { spawnSync } from "node:child_process";
import { findChromium } from "./chromium.ts";

type Command = readonly [program: string, ...args: string[]];

interface Need {
  found: () => boolean;
  apt: string;
  brew: readonly string[];
  advice: string;
}

const NEEDS: readonly Need[] = [
  {
    found: () => findChromium() !== undefined,
    apt: "chromium",
    brew: ["--cask", "chromium"],
    advice: `The tests drive a real Chromium, and there is none here. Install it, and run them again:
  Debian:  sudo apt-get update && sudo apt-get install chromium
  Ubuntu:  sudo snap install chromium
  macOS:   brew install --cask chromium
or say where it is: CHROMIUM=/path/to/chromium npm test
`,
  },
  {
    found: () => has("redis-server"),
    apt: "redis-server",
    brew: ["redis"],
    advice: `The tests start real Redis servers, and there is no redis-server on the PATH. Install it, and run them again:
  Debian, Ubuntu:  sudo apt-get update && sudo apt-get install redis-server
  macOS:           brew install redis
`,
  },
];

const missing = NEEDS.filter(({ found }) => !found());
if (missing.length > 0) install(missing);

function install(needs: readonly Need[]): void {
  // One that fails keeps no other from being installed; what is missing then is said below.
  for (const [program, ...args] of installers(needs))
    spawnSync(program, args, { stdio: "inherit" });
  for (const { advice } of needs.filter(({ found }) => !found())) {
    process.stderr.write(advice);
    process.exitCode = 1;
  }
}

/** What may be run without a password. */
function installers(needs: readonly Need[]): readonly Command[] {
  if (has("brew")) return needs.map(({ brew }): Command => ["brew", "install", ...brew]);
  if (!has("apt-get")) return [];
  const commands: readonly Command[] = [
    ["apt-get", "update"],
    ...needs.map(({ apt }): Command => {
      return ["apt-get", "install", "--yes", "--no-install-recommends", apt];
    }),
  ];
  if (process.getuid?.() === 0) return commands;
  if (!has("sudo") || spawnSync("sudo", ["--non-interactive", "true"]).status !== 0) return [];
  return commands.map((command): Command => ["sudo", "--non-interactive", ...command]);
}

function has(program: string): boolean {
  return spawnSync("which", [program]).status === 0;
}
