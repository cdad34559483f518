/**
 * Loaded before the agent: ends the process, as kill -9 does, right after the durable step whose number
 * is in KILL_AFTER. A step is a sync, a rename, a link or a removal.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

let left = Number(process.env["KILL_AFTER"]);

for (const name of ["fsyncSync", "fdatasyncSync", "renameSync", "linkSync", "rmSync"] as const) {
  const step: (...args: never[]) => unknown = fs[name];
  Object.assign(fs, {
    [name]: (...args: never[]) => {
      const result = step(...args);
      if (--left === 0) process.kill(process.pid, "SIGKILL");
      return result;
    },
  });
}
syncBuiltinESMExports();
