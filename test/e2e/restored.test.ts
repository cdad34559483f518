/** A database that is an hour, or ten minutes, old again: what operators and agents then do. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { instantText } from "../../src/core/unit.ts";
import { type Embedded, startPostgres } from "../../src/embedded.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import { connect, type Sql } from "../../src/store/connect.ts";
import { entriesOf, ofKind, reported } from "../flow/door.ts";
import { ask, newAgent, newLogOn } from "../http/house.ts";
import { startCluster } from "../postgres.ts";
import { openSite, run, type Serving, type Site, serve } from "./process.ts";

const shell = promisify(execFile);

let site: Site;
let folder: string;
let server: Embedded;
let remove: () => Promise<void>;

beforeAll(async () => {
  site = await openSite();
  ({ embedded: server, folder, remove } = await startCluster());
});
afterAll(async () => {
  await server.stop();
  await remove();
  await site.remove();
});

const environment = (): Record<string, string> => ({
  ...site.environment,
  DATABASE_URL: server.urls.writer,
  READER_DATABASE_URL: server.urls.reader,
});

async function reading<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = connect(server.urls.reader, { max: 2 });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}

const FINISHED = instantText(Date.now() - 60_000);
const AGENTS = [1, 2, 3];

const runnerOf = (seed: number): string => `runner-${seed}`;

/** What an agent keeps: its reports in their order, and which of them were answered. */
class Spool {
  readonly texts: string[] = [];
  answered = 0;
  readonly #seed: number;
  readonly #log: string;

  constructor(seed: number, log: string) {
    this.#seed = seed;
    this.#log = log;
  }

  add(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const counter = this.texts.length + 1;
      const job = { id: String(this.#seed * 1_000_000 + counter) };
      const usage = { finished_at: FINISHED };
      const change = { counter: String(counter), job, usage, uuid: runnerOf(this.#seed) };
      this.texts.push(reported(this.#seed, this.#log, change));
    }
  }

  /** One request with up to ten of what has no answer; whether it got one. */
  async send({ url }: Serving): Promise<boolean> {
    const reports = this.texts.slice(this.answered, this.answered + 10);
    const response = await fetch(`${url}/v1/reports`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ reports }),
    }).catch(() => undefined);
    if (response?.status !== 200) return false;
    this.answered += reports.length;
    return true;
  }

  /** Its receipts were broken: everything is sent again. */
  again(): void {
    this.answered = 0;
  }
}

const RETRY_MS = 50;
/** Others may be at work on the same machine. */
const PATIENCE = { timeout: 60_000 };

/** Until everything has an answer, as long as it takes, or until nobody wants it any more. */
async function deliver(
  spools: readonly Spool[],
  serving: Serving,
  signal?: AbortSignal,
): Promise<void> {
  await Promise.all(
    spools.map(async (spool) => {
      while (spool.answered < spool.texts.length && signal?.aborted !== true) {
        if (!(await spool.send(serving))) await delay(RETRY_MS);
      }
    }),
  );
}

async function readiness({ url }: Serving): Promise<{ ready: boolean; refused: object }> {
  return (await (await fetch(`${url}/readyz`)).json()) as { ready: boolean; refused: object };
}

async function newest(log: string): Promise<{ size: bigint; root: string }> {
  const found = await folderArchive(join(site.folder, "archive")).latestCheckpoint(log);
  const note = found?.note ?? "";
  const checkpoint = parseCheckpoint(note.slice(0, note.lastIndexOf("\n\n") + 1));
  if (checkpoint === undefined) throw new Error("no checkpoint");
  return { size: checkpoint.size, root: encodeBase64(checkpoint.root) };
}

/** The database goes amid load, and comes back as a copy of its files had it before. */
async function loseTheTail(first: Serving, spools: readonly Spool[], log: string) {
  // The copy of ten minutes ago, as a backup of the files takes it.
  await first.end("SIGTERM");
  await server.stop();
  const backup = `${server.data}.backup`;
  await shell("cp", ["-a", server.data, backup]);
  server = await startPostgres({ folder });
  const copied = (await newest(log)).size;
  const second = await serve(environment());
  for (const spool of spools) spool.add(2_000);
  const load = new AbortController();
  const sending = deliver(spools, second, load.signal);
  // Amid the load all of it goes, after a checkpoint that the copy lacks.
  const size = async (): Promise<bigint> => (await newest(log)).size;
  await expect.poll(size, PATIENCE).toBeGreaterThan(copied + 300n);
  await Promise.all([server.kill9(), second.end("SIGKILL")]);
  load.abort();
  await sending;
  await shell("rm", ["-r", server.data]);
  await shell("mv", [backup, server.data]);
  server = await startPostgres({ folder });
  return { archived: await newest(log), copied };
}

/** What was archived stands, and each build that any agent has is used exactly once. */
async function expectWhole(
  log: string,
  { root, size }: { root: string; size: bigint },
  spools: readonly Spool[],
): Promise<void> {
  const [stored] = await reading(
    (sql) => sql`select root from checkpoints where log = ${log} and size = ${size}`,
  );
  expect(encodeBase64(stored?.["root"])).toBe(root);
  const used = ofKind(await reading((sql) => entriesOf(sql, log)), "usage");
  expect(used.map(({ body }) => body.jws).sort()).toEqual(
    spools.flatMap(({ texts }) => texts).sort(),
  );
}

async function expectAudited(vkey: string): Promise<void> {
  const checked = await run(["check", "--vkey", vkey], environment());
  expect([checked.status, checked.stderr]).toEqual([0, ""]);
  const archive = join(site.folder, "archive");
  const audited = await run(["verify", archive, "--vkey", vkey], {}, "audit/cli.ts");
  expect([audited.status, audited.stderr]).toEqual([0, ""]);
}

test("restored to ten minutes ago under load, then recover and resend: the same root as archived, sealing on, no report lost and none doubled", async () => {
  const first = await serve(environment());
  const { token } = site;
  const log = await newLogOn(first, token, "restored");
  for (const seed of AGENTS) await newAgent(first, log, seed, { uuid: runnerOf(seed) }, token);
  const spools = AGENTS.map((seed) => new Spool(seed, log));
  for (const spool of spools) spool.add(60);
  await deliver(spools, first);
  await expect.poll(async () => (await newest(log)).size, PATIENCE).toBeGreaterThan(150n);

  const { archived, copied } = await loseTheTail(first, spools, log);
  const third = await serve(environment());
  const stopped = new AbortController();
  const going = deliver(spools, third, stopped.signal);
  await expect
    .poll(() => readiness(third), PATIENCE)
    .toMatchObject({ ready: false, refused: { "log-behind": 1 } });
  expect(await reading((sql) => entriesOf(sql, log))).toHaveLength(Number(copied));
  expect(await newest(log)).toEqual(archived);

  const dry = await run(["recover", log, "--dry-run", "--json"], environment());
  expect([dry.status, dry.stderr]).toEqual([1, ""]);
  const { status, stdout } = await run(["recover", log, "--json"], environment());
  expect(status).toBe(0);
  const { logs } = JSON.parse(stdout);
  expect(logs).toMatchObject([{ before: String(copied), archived: String(archived.size) }]);
  // The service that was refused goes on by itself, and agents send what was never archived.
  await expect.poll(() => readiness(third), PATIENCE).toMatchObject({ ready: true, refused: {} });
  stopped.abort();
  await going;
  for (const spool of spools) spool.again();
  await deliver(spools, third);
  await expect
    .poll(
      async () => (await reading((sql) => headOf(sql, log))) - (await newest(log)).size,
      PATIENCE,
    )
    .toBe(0n);

  await expectWhole(log, archived, spools);
  const listed = await ask(third, "GET /v1/logs", { token });
  const [{ vkey }] = listed.json["logs"] as [{ vkey: string }];
  expect(await third.end("SIGTERM")).toBe(0);
  await expectAudited(vkey);
}, 300_000);

async function headOf(sql: Sql, log: string): Promise<bigint> {
  const [row] = await sql<{ size: bigint }[]>`select size from heads where log = ${log}`;
  return row?.size ?? 0n;
}
