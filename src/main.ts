#!/usr/bin/env node
/** `minutebook`: see command/program.ts for what it can do. */
import { run } from "./command/program.ts";

// Whoever reads our output may have had enough of it: `minutebook usage | head`.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

await run(process.argv.slice(2));
