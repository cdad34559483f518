#!/usr/bin/env node
import { run } from "./command/program.ts";

const COULD_NOT_LOOK = 2;
let failed = false;

// Node ends with 1 where nobody listens, and so does a finding. What nobody could read is no verdict.
process.on("uncaughtException", (error) => {
  process.stderr.write(`could not look: ${error}\n`);
  process.exit(COULD_NOT_LOOK);
});
process.stdout.on("error", ({ message }) => {
  if (!failed) process.stderr.write(`could not look: the outcome cannot be written: ${message}\n`);
  failed = true;
  process.exitCode = COULD_NOT_LOOK;
});
process.stderr.on("error", () => {
  failed = true;
  process.exitCode = COULD_NOT_LOOK;
});

const exit = await run(process.argv.slice(2), {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
  progress: process.stderr.isTTY,
});
process.exitCode = failed ? COULD_NOT_LOOK : exit;
