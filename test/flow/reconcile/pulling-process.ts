/** A process that walks over a log's runners until it is killed: `pulling-process.ts DATABASE_URL ARCHIVE GITLAB_URL TOKEN LOG`. */
import { enlistRunners, pullStep } from "../../../src/flow/reconcile/pull.ts";
import { connect } from "../../../src/store/connect.ts";
import { openDoor } from "../door.ts";

const [database = "", archive = "", url = "", token = "", log = ""] = process.argv.slice(2);
const sql = connect(database, { max: 4 });
await sql`select 1`;
const door = openDoor(sql, { archive, seed: String(process.pid) });
const pulling = {
  ...{ sql, appender: door.appender, random: door.random },
  clock: { now: () => door.now },
  gitlabs: [{ log, url, token }],
  signal: new AbortController().signal,
  intervalMs: 3_600_000,
  lookbackMs: 86_400_000,
  monthLookbackMs: 7_776_000_000,
};
await enlistRunners(pulling);
for (;;) await pullStep(pulling);
