/** A private server with one log in it, written through the one door, sealed and folded on demand. */
import { generateKeyPairSync, randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { formatVkey } from "../src/core/note.ts";
import { heldKey } from "../src/custody.ts";
import { removePostgres, startPostgres, type Urls } from "../src/embedded.ts";
import { systemClock } from "../src/flow/clock.ts";
import { claim } from "../src/flow/key/claim.ts";
import { enrol } from "../src/flow/key/enrol.ts";
import { type Appender, openAppender } from "../src/flow/log/append.ts";
import { create, NewLog } from "../src/flow/log/create.ts";
import { openGuard } from "../src/flow/log/guard.ts";
import { type Sealer, seal } from "../src/flow/log/seal.ts";
import {
  type CheckpointSigner,
  checkpointSigner,
  type SignerFor,
} from "../src/flow/log/signed-checkpoint.ts";
import { card } from "../src/flow/rate/card.ts";
import { sha256 } from "../src/flow/report/signature.ts";
import type { SignedReport } from "../src/flow/report/verify.ts";
import { folderArchive } from "../src/store/archive-folder.ts";
import { connect, type Sql } from "../src/store/connect.ts";
import { migrate } from "../src/store/migrations.ts";
import { Fleet, RUNNER } from "./fleet.ts";

const MIGRATIONS = new URL("../../migrations", import.meta.url).pathname;
/** An agent's batch, and how many are on their way: one commit under way, one that fills. */
const BATCH = 100;
const BATCHES_IN_FLIGHT = 10;
const BY = "bench";
/** Of logs whose receipts nobody asks for. */
export const KEYRING = {
  firstKeys: (log: string) => ({ checkpoint: `bench.test/${log}`, receipt: `bench.test/${log}` }),
};

export interface Ledger {
  log: string;
  fleet: Fleet;
  /** The claim that brought the fleet's key. */
  claim: string;
  /** As writer. */
  sql: Sql;
  appender: Appender;
  sealer: Sealer;
  urls: Urls;
  archive: string;
  vkey: string;
  append(verdicts: readonly SignedReport[]): Promise<void>;
  seal(): Promise<void>;
  close(): Promise<void>;
}

export async function openLedger(
  folder: string,
  settings: Record<string, string> = {},
): Promise<Ledger> {
  const data = join(folder, "postgres");
  const archive = join(folder, "archive");
  await mkdir(archive, { recursive: true });
  const embedded = await startPostgres({ folder: data, settings });
  await migrated(embedded.urls.owner);
  const sql = connect(embedded.urls.writer, { name: "bench" });
  const behind = connect(embedded.urls.writer, { name: "bench" });
  const { privateKey } = generateKeyPairSync("ed25519");
  const signers = new Map<string, CheckpointSigner>();
  const signerFor: SignerFor = async (_, log) => {
    const signer = signers.get(log) ?? checkpointSigner(`bench.test/${log}`, [heldKey(privateKey)]);
    signers.set(log, signer);
    return signer;
  };
  const parts = { archive: folderArchive(archive), clock: systemClock, hash: sha256, signerFor };
  const guard = openGuard(parts);
  const sealer: Sealer = { ...parts, guard, sql: behind };
  const door = { sql, clock: systemClock, random: randomBytes, hash: sha256, guard };
  const appender = openAppender({ ...door, failed: fail });
  const { log, fleet, ...claimed } = await found(appender, BY);
  return {
    log,
    fleet,
    claim: claimed.claim,
    sql,
    appender,
    sealer,
    urls: embedded.urls,
    archive,
    vkey: formatVkey(`bench.test/${log}`, heldKey(privateKey).publicKey),
    append: (verdicts) => appendAll(appender, log, verdicts),
    seal: async () => {
      if ((await seal({ ...sealer, log })) === undefined) throw new Error("bench: nothing sealed");
    },
    close: async () => {
      await appender.close();
      await Promise.all([sql.end(), behind.end()]);
      await embedded.stop();
      await removePostgres(data);
    },
  };
}

/** Appends as many reports as are missing, a piece at a time, so that memory stays small. */
export async function fill(
  { append, fleet }: Ledger,
  entries: number,
  namespaces: number,
  say: (text: string) => void,
): Promise<void> {
  const piece = 10_000;
  for (let done = 0; done < entries; done += piece) {
    await append(fleet.verdicts(Math.min(piece, entries - done), namespaces));
    say(`${Math.min(done + piece, entries)} of ${entries} entries`);
  }
}

async function migrated(owner: string): Promise<void> {
  const sql = connect(owner, { max: 1, name: "bench" });
  await migrate({ sql, folder: MIGRATIONS, appliedBy: BY });
  await sql.end();
}

/** A log with one card, one runner and its claimed key. */
export async function found(
  appender: Appender,
  unique_id: string,
): Promise<{ log: string; fleet: Fleet; claim: string }> {
  const parts = { appender, random: randomBytes };
  const effective_from = "2020-01-01T00:00:00.000Z";
  const genesis = { unique_id, platform: "dotcom", billing_from: effective_from };
  const { log } = await create(
    { ...parts, keyring: KEYRING, roles: [] },
    BY,
    NewLog.parse(genesis),
  );
  await card(
    parts,
    { log, by: BY },
    {
      effective_from,
      not_billable: [],
      project_factors: {},
      runner_factors: { [RUNNER.machine_type]: "2" },
      source: BY,
      tracking: "hosted",
    },
  );
  const { uuid, id: runner_id, machine_type } = RUNNER;
  const runner = { effective_from, machine_type, runner_id, uuid };
  const { token } = await enrol(parts, log, BY, {
    namespaces: [],
    runners: [{ ...runner, runner_type: "instance", tracking: "hosted" }],
    claim_seconds: 3_600,
  });
  const fleet = new Fleet(log);
  const statement = fleet.claim(token);
  await claim(parts, { token, claim: statement });
  return { log, fleet, claim: statement };
}

async function appendAll(
  appender: Appender,
  log: string,
  verdicts: readonly SignedReport[],
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < verdicts.length) {
      const batch = verdicts.slice(next, next + BATCH);
      next += BATCH;
      for (const { code } of await appender.reports(log, batch)) {
        if (code !== "accepted") throw new Error(`bench: a report was answered ${code}`);
      }
    }
  };
  await Promise.all(Array.from({ length: BATCHES_IN_FLIGHT }, lane));
}

function fail(error: unknown): void {
  throw error;
}
