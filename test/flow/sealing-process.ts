/**
 * A process that seals until it is killed: `sealing-process.ts DATABASE_URL ARCHIVE`. It says a line
 * before and after everything it does to the archive, so that a test can kill it in between.
 */
import { sealLoop } from "../../src/flow/log/seal-loop.ts";
import type { Archive } from "../../src/store/archive.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import { connect } from "../../src/store/connect.ts";
import { failOn, sealerOf } from "./chain.ts";

const [url = "", root = ""] = process.argv.slice(2);
const archive = folderArchive(root);

async function told<T>(what: string, work: Promise<T>): Promise<T> {
  process.stdout.write(`${what}\n`);
  const done = await work;
  process.stdout.write(`${what} done\n`);
  return done;
}

const telling: Archive = {
  ...archive,
  put: (files) => told("put", archive.put(files)),
  create: (path, bytes) => told("create", archive.create(path, bytes)),
};

await sealLoop({
  ...sealerOf(connect(url, { max: 2 }), telling),
  intervalMs: 1,
  signal: new AbortController().signal,
  onFailure: failOn,
}).done;
