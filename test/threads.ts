/**
 * The verifiers' thread as one file of plain JavaScript, made once per run: from source each thread would load
 * tsx first, a second of CPU, and nearly every test file starts some.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { build } from "vite";
import type { TestProject } from "vitest/node";

declare module "vitest" {
  interface ProvidedContext {
    /** Path of the thread's file. */
    verifier: string;
  }
}

/** Below node_modules, for the packages that are not bundled. */
const PLACE = new URL("../node_modules/.minutebook", import.meta.url).pathname;
const SOURCE = new URL("verifier-thread.ts", import.meta.url).pathname;

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  await mkdir(PLACE, { recursive: true });
  const folder = await mkdtemp(join(PLACE, "threads-"));
  await build({
    configFile: false,
    logLevel: "error",
    build: {
      ssr: SOURCE,
      outDir: folder,
      rollupOptions: { output: { entryFileNames: "verifier.mjs" } },
    },
    ssr: { noExternal: true, external: ["sodium-native"] },
  });
  project.provide("verifier", join(folder, "verifier.mjs"));
  return () => rm(folder, { recursive: true });
}
