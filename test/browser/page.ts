/** The auditor's module in a real Chromium, on a page of the server that has the log. */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "vite";
import type { Files } from "../audit/archive.ts";
import { type Lie, serveFiles } from "../audit/server.ts";
import { launchChromium } from "../chromium.ts";

export interface AuditPage {
  /** Of the log, on the page's own server. */
  url: string;
  /** The value of an expression in which `audit` and `probe` are the modules. */
  call<T>(expression: string): Promise<T>;
  close(): Promise<void>;
}

const HTML = `<!doctype html><title>audit</title><script type="module">
import * as audit from "/minutebook-audit.js";
import * as probe from "/probe.js";
Object.assign(globalThis, { audit, probe });
</script>`;

/** The module as `npm run build:browser` makes it; another entry instead, for the probe. */
export async function buildModule(folder: string, entry?: string): Promise<void> {
  await build({
    root: process.cwd(),
    logLevel: "error",
    build: {
      outDir: folder,
      emptyOutDir: false,
      ...(entry !== undefined && { lib: { entry, fileName: () => "probe.js" } }),
    },
  });
}

export async function openAuditPage(files: Files = new Map()): Promise<AuditPage> {
  const folder = await mkdtemp(join(tmpdir(), "audit-browser-"));
  await buildModule(folder);
  await buildModule(folder, "test/browser/probe.ts");
  const server = await serveFiles(files, { lie: pageIn(folder) });
  const browser = await launchChromium();
  const page = await browser.newPage();
  await page.goto(new URL("/", server.url).href);
  await page.waitForFunction("globalThis.probe !== undefined");
  return {
    url: server.url,
    call: (expression) => page.evaluate(expression),
    close: async () => {
      await browser.close();
      await server.close();
      await rm(folder, { recursive: true });
    },
  };
}

function pageIn(folder: string): Lie {
  return (path, answer) => {
    if (path === "/") answer.setHeader("content-type", "text/html").end(HTML);
    const script = path.endsWith(".js");
    if (script) {
      answer.setHeader("content-type", "text/javascript");
      answer.end(readFileSync(join(folder, path.slice(1))));
    }
    return path === "/" || script;
  };
}
