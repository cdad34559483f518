/** Chromium on this machine, wherever the system's packages, or the variable CHROMIUM, have put it. */
import { spawnSync } from "node:child_process";
import { type Browser, chromium } from "playwright-core";

const PLACES = [
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
  "/snap/bin/chromium",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
const START_MS_MAX = 30_000;

/** As root it needs no sandbox; the rest keeps it from talking to anybody. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** One that runs: Ubuntu's package of that name is a script that only says where else to look. */
export function findChromium(): string | undefined {
  const named = process.env["CHROMIUM"];
  return (named === undefined ? PLACES : [named]).map(pathOf).find(runs);
}

/** Throws, with what to do, where there is none. The profile is a new one, and goes with the browser. */
export async function launchChromium(): Promise<Browser> {
  const executablePath = findChromium();
  if (executablePath === undefined) {
    throw new Error("no Chromium: npx tsx test/prepare.ts installs it, or CHROMIUM=PATH names it");
  }
  return await chromium.launch({ executablePath, headless: true, args: FLAGS });
}

function pathOf(name: string): string {
  if (name.startsWith("/")) return name;
  return spawnSync("which", [name], { encoding: "utf8" }).stdout.trim();
}

function runs(path: string): boolean {
  if (path === "") return false;
  const asked = spawnSync(path, ["--version"], { encoding: "utf8", timeout: START_MS_MAX });
  return asked.status === 0 && /\b(?:Chromium|Chrome)\b/.test(asked.stdout);
}
