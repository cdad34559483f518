/**
 * One export made by a process of its own, as the service makes it, or the bare COPY that it is held against.
 * Argument: a `Task` as JSON. Prints an `Outcome`.
 */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { formatCheckpoint } from "../src/core/checkpoint.ts";
import { type ExportName, type Format, TABLES } from "../src/core/export/tables.ts";
import { canonical } from "../src/core/json.ts";
import { formatVkey } from "../src/core/note.ts";
import { encodeUtf8 } from "../src/core/text.ts";
import { heldKey } from "../src/custody.ts";
import { systemClock } from "../src/flow/clock.ts";
import { completed, focus } from "../src/flow/export/focus.ts";
import { make } from "../src/flow/export/make.ts";
import type { Notary } from "../src/flow/export/note.ts";
import { SOURCES } from "../src/flow/export/sources.ts";
import { checkpointSigner } from "../src/flow/log/signed-checkpoint.ts";
import { connect, type Sql } from "../src/store/connect.ts";
import { folderExports } from "../src/store/export-files-folder.ts";
import { insertExport, readExport } from "../src/store/exports.ts";
import { transact } from "../src/store/transact.ts";
import { seconds } from "./measure.ts";
import { peakMemory } from "./process.ts";

export interface Task {
  /** As writer. */
  url: string;
  log: string;
  asOf: string;
  folder: string;
  work: { name: ExportName; format: Format; month: string } | "copy";
}

export interface Outcome {
  seconds: number;
  bytes: number;
  /** Of this process, in MiB. */
  peak: number;
}

const task: Task = JSON.parse(process.argv[2] ?? "");
const sql = connect(task.url, { name: "bench", limits: { statement: 0, idle: 0 } });
let bytes = 0;
const took = await seconds(async () => {
  bytes = task.work === "copy" ? await copy(sql) : await exported(sql, task.work);
});
const outcome: Outcome = { seconds: took, bytes, peak: peakMemory(process.pid) };
process.stdout.write(JSON.stringify(outcome));
await sql.end();

/** The columns of `entries` that the export has, as they are. */
async function copy(pool: Sql): Promise<number> {
  const own = ["line", "adjustment_compute_ms"];
  const columns = TABLES.entries.map(({ name }) => name).filter((name) => !own.includes(name));
  return await transact(pool, async (tx) => {
    const copying = tx.unsafe(`
      copy (
        select ${columns.join(", ")}
        from entries
        where log = '${task.log}' and index < ${task.asOf}
        order by index
      ) to stdout`);
    const stream = await copying.readable();
    let read = 0;
    for await (const chunk of stream) read += chunk.length;
    stream._read(0); // As in store/copy.ts: the end of the transaction would not be heard.
    return read;
  });
}

async function exported(
  pool: Sql,
  { name, format, month }: Exclude<Task["work"], "copy">,
): Promise<number> {
  const { log, folder } = task;
  const id = randomBytes(16).toString("hex");
  const asked = name === "entries" || name === "account_map" ? {} : { month };
  const parameters = canonical(completed(name, asked, undefined));
  await insertExport(pool, {
    ...{ log, id, name, format, parameters, as_of: BigInt(task.asOf) },
    ...{ checkpoint_size: BigInt(task.asOf), checkpoint_root: new Uint8Array(32) },
    ...{ asked_by: "bench", asked_at: new Date(), origin: null, kept: false, deliver_to: null },
  });
  const row = await readExport(pool, { log, id });
  if (row === undefined) throw new Error("bench: no export was asked for");
  const files = folderExports(folder);
  const { signal } = new AbortController();
  const sources = { ...SOURCES, focus: focus(undefined) };
  const making = { sql: pool, holds: pool, files, sources, clock: systemClock, signal };
  await make({ ...making, ...notary(), generator: "bench" }, row);
  const done = await readExport(pool, { log, id });
  if (done?.state !== "done") throw new Error(`bench: ${name} ended as ${done?.state}`);
  return Number(done.bytes);
}

/** Rows that the database wrote have no checkpoint: one is signed here, as is the manifest. */
function notary(): Notary {
  const { asOf, log } = task;
  const origin = `bench.test/${log}`;
  const key = heldKey(generateKeyPairSync("ed25519").privateKey);
  const signer = checkpointSigner(origin, [key]);
  const text = formatCheckpoint({ origin, size: BigInt(asOf), root: new Uint8Array(32) });
  const checkpoint = [{ vkey: formatVkey(origin, key.publicKey), state: "in_force", key }] as const;
  return {
    archive: { get: async () => encodeUtf8(await signer.sign(text)) },
    keyring: {
      signerFor: async () => signer,
      standing: async () => [{ origin, checkpoint, receipt: [] }],
    },
  };
}
