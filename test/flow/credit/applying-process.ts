/**
 * A process that applies one run until it is killed: `applying-process.ts DATABASE_URL ARCHIVE LOG RUN`. It says
 * a line after each step, and each step's end is the next one's beginning.
 */
import { writeSync } from "node:fs";
import { Problem } from "../../../src/core/problem.ts";
import { applyRun } from "../../../src/flow/credit/apply.ts";
import { connect } from "../../../src/store/connect.ts";
import { openDoor } from "../door.ts";

const [url = "", archive = "", log = "", run = ""] = process.argv.slice(2);
const sql = connect(url, { max: 4, name: "applying" });
const door = openDoor(sql, { archive, seed: `applying ${process.pid}` });
const { appender, random } = door;
const applying = { appender, random, sql, clock: { now: () => door.now } };
const applied = async (): Promise<void> => {
  await applyRun(applying, { log, index: BigInt(run) }, ({ written }) => {
    writeSync(1, `${written}\n`);
    return true;
  });
};
/** As the service does: whoever holds the head for long, even dead, lets go of it in the end. */
for (let busy = true; busy; ) {
  busy = await applied().then(
    () => false,
    (error: unknown) => {
      if (error instanceof Problem && error.code === "busy") return true;
      throw error;
    },
  );
}
await door.close();
await sql.end();
