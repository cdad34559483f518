import { defineConfig } from "vitest/config";

/** What starts a thread from source, by what starts it from plain JavaScript. */
const READERS = {
  find: /^.*\/start-thread\.ts$/,
  replacement: new URL("test/start-thread.ts", import.meta.url).pathname,
};
const VERIFIERS = {
  find: /^.*\/start-worker\.ts$/,
  replacement: new URL("test/start-worker.ts", import.meta.url).pathname,
};

/** What replaces a module of Node: nobody else may share its process. */
const MOCKING = ["test/flow/log/seal-crash.test.ts"];

/** Milliseconds. Bounds what hangs, and nothing else: a machine that is busy otherwise takes ten times as long. */
const PATIENCE = 180_000;

export default defineConfig({
  test: {
    // Most of them wait for PostgreSQL or for a process: with fewer, two cores stand idle a fifth of the time.
    maxWorkers: 4,
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts", "audit/**/*.ts"],
    },
    projects: [
      {
        // Functions of their arguments: nothing that a file could leave behind for the next in its process.
        test: {
          name: "pure",
          include: ["test/{core,format}/**/*.test.ts"],
          isolate: false,
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
      {
        resolve: { alias: [READERS] },
        test: {
          name: "unit",
          include: [
            "test/{agent,audit}/**/*.test.ts",
            "test/{config*,custody,telemetry,tidy}.test.ts",
          ],
          // They import nearly all of the auditor or the agent: once per process instead of once per file.
          isolate: false,
          globalSetup: "test/compile.ts",
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
      {
        resolve: { alias: [READERS, VERIFIERS] },
        test: {
          name: "real",
          include: [
            "test/{store,flow,http,command,controls}/**/*.test.ts",
            "test/embedded{,/**/*}.test.ts",
          ],
          exclude: MOCKING,
          // They import nearly all that there is.
          isolate: false,
          pool: "forks",
          globalSetup: ["test/compile.ts", "test/template.ts", "test/threads.ts"],
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
      {
        test: {
          name: "mocking",
          include: MOCKING,
          pool: "forks",
          globalSetup: "test/template.ts",
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
      {
        test: {
          name: "browser",
          include: ["test/browser/**/*.test.ts"],
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
      {
        test: {
          name: "e2e",
          include: ["test/e2e/**/*.test.ts"],
          exclude: ["test/e2e/quota-chaos.test.ts"],
          pool: "forks",
          globalSetup: ["test/compile.ts", "test/template.ts"],
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
      {
        // Run when all others are over: how old an answer is says nothing on a machine that they keep busy.
        test: {
          name: "alone",
          include: ["test/e2e/quota-chaos.test.ts"],
          sequence: { groupOrder: 1 },
          pool: "forks",
          globalSetup: ["test/compile.ts", "test/template.ts"],
          testTimeout: PATIENCE,
          hookTimeout: PATIENCE,
        },
      },
    ],
  },
});
