/**
 * A process that makes exports: `making-process.ts DATABASE_URL ARCHIVE FOLDER stalled` says a line after each page, and
 * stays within the third one until it is killed; `… long ROWS` makes one of so many rows, and says how much
 * memory it took at most, in MiB.
 */
import { writeSync } from "node:fs";
import { make } from "../../../src/flow/export/make.ts";
import { openKeyring } from "../../../src/flow/key/keyring.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { connect } from "../../../src/store/connect.ts";
import { folderExports } from "../../../src/store/export-files-folder.ts";
import { listPending } from "../../../src/store/exports.ts";
import { HELD } from "../door.ts";
import { long, stalled } from "./making.ts";

const [url = "", archive = "", folder = "", kind = "", rows = "0"] = process.argv.slice(2);
const sql = connect(url, { max: 3, name: "making" });
const clock = { now: Date.now };
const keyring = openKeyring({ serviceName: "door.test", held: HELD, sql, clock });
const say = (line: number): void => void writeSync(1, `${line}\n`);
const entries = kind === "stalled" ? stalled(say) : long(Number(rows));
const [row] = await listPending(sql, 0n, 1);
if (row === undefined) throw new Error("nothing was asked for");
await make(
  {
    ...{ sql, holds: sql, files: folderExports(folder), sources: { entries } },
    ...{ archive: folderArchive(archive), keyring, clock, generator: "test 1" },
    signal: new AbortController().signal,
  },
  row,
);
say(Math.round(process.resourceUsage().maxRSS / 1024));
await sql.end();
