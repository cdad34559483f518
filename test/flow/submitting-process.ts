/**
 * A process that submits to one witness until it is killed: `submitting-process.ts DATABASE_URL ARCHIVE
 * WITNESS_URL`. It says a line before and after it keeps what the witness signed, in the archive and in
 * the table, so that a test can kill it in between.
 */
import { witnessLoop } from "../../src/flow/log/witness-loop.ts";
import type { Archive } from "../../src/store/archive.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import { connect, type Sql } from "../../src/store/connect.ts";
import { failOn, nodeHash } from "./chain.ts";
import { TestWitness } from "./witness.ts";

const [url = "", root = "", witnessUrl = ""] = process.argv.slice(2);
const say = (what: string): boolean => process.stdout.write(`${what}\n`);

const archive = folderArchive(root);
const tellingArchive: Archive = {
  ...archive,
  create: async (path, bytes) => {
    say("file");
    const outcome = await archive.create(path, bytes);
    say("file done");
    return outcome;
  },
};

const sql = connect(url, { max: 2 });
// As in the service, where roles are looked at first: the driver learns of arrays by its first query.
await sql`select 1`;
const tellingSql = new Proxy<Sql>(sql, {
  apply: (query, self, parts: [TemplateStringsArray]) => {
    const result = Reflect.apply(query, self, parts);
    const inserts = parts[0].join("").includes("insert into cosignatures");
    return inserts ? result.then(() => say("row done")) : result;
  },
});

const witness = new TestWitness("ada", 61);
witness.url = witnessUrl;
await witnessLoop({
  sql: tellingSql,
  archive: tellingArchive,
  clock: { now: () => Date.now() },
  hash: nodeHash,
  witnesses: [witness],
  intervalMs: 10,
  signal: new AbortController().signal,
  observer: {
    cosigned: () => undefined,
    refused: () => undefined,
    failed: (_, error) => failOn(error),
    roundEnded: () => undefined,
  },
});
