/** The one door with everything behind it, on a real database: for tests of what goes through it. */
import { hash } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { localIssuer } from "../../src/command/issuer.ts";
import {
  decodeEntry,
  type EnrolledRunner,
  type Entry,
  type EntryOf,
  type Kind,
} from "../../src/core/entry.ts";
import { leafHash, type Sha256 } from "../../src/core/hash.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { compact, headerSegment } from "../../src/core/jws.ts";
import { type Report, TYP } from "../../src/core/report.ts";
import { encodeBase64, encodeUtf8, equal } from "../../src/core/text.ts";
import { configuredRoles } from "../../src/flow/access/configured.ts";
import { claim } from "../../src/flow/key/claim.ts";
import { enrol, tokenDigest } from "../../src/flow/key/enrol.ts";
import { openKeyring } from "../../src/flow/key/keyring.ts";
import type { HeldKeys } from "../../src/flow/key/standing.ts";
import { openAppender } from "../../src/flow/log/append.ts";
import { create, NewLog } from "../../src/flow/log/create.ts";
import { openGuard } from "../../src/flow/log/guard.ts";
import { openDirectory } from "../../src/flow/report/directory.ts";
import { type Ingested, ingest } from "../../src/flow/report/ingest.ts";
import { openIntake } from "../../src/flow/report/intake.ts";
import { openReceipts } from "../../src/flow/report/receipt.ts";
import { openRegister } from "../../src/flow/report/register.ts";
import { startVerifier } from "../../src/flow/report/verify.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import type { Sql, Transaction } from "../../src/store/connect.ts";
import { readEntries } from "../../src/store/entries.ts";
import { transact } from "../../src/store/transact.ts";
import { CARD, jwk, kidOf, LONG_AGO, NOW, RUNNER, report as reportOf } from "../core/history.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";
import { testKey } from "../signing.ts";
import { held, signersUnder } from "./signer.ts";

export const sha256: Sha256 = (bytes) => new Uint8Array(hash("sha256", bytes, "buffer"));

/** Not secret and not repeated: what a test wants of salts and tokens. */
function counting(seed: string): (bytes: number) => Uint8Array {
  let count = 0;
  return (bytes) => {
    count += 1;
    return hash("sha512", `${seed} ${count}`, "buffer").subarray(0, bytes);
  };
}

/** The log key of the service that these tests stand for. */
export const { signerFor, vkeyOf } = signersUnder("door.test", testKey(9));
export const HELD: HeldKeys = {
  checkpoint: [held(testKey(9))],
  receipt: [held(testKey(10))],
  available: () => true,
};

export type Door = ReturnType<typeof openDoor>;

interface DoorOptions {
  archive: string;
  seed?: string;
  intake?: { reports?: number; bytes?: number };
  held?: HeldKeys;
}

/** One process of the service, as far as append goes. `now` is its clock. */
export function openDoor(sql: Sql, options: DoorOptions) {
  const door = { now: Date.parse(NOW), failures: [] as unknown[], commits: [] as number[] };
  const clock = { now: () => door.now };
  const random = counting(options.seed ?? "door");
  const { held = HELD } = options;
  const keyring = openKeyring({ serviceName: "door.test", held, sql, clock });
  const archive = folderArchive(options.archive);
  const guard = openGuard({ archive, signerFor: keyring.signerFor, clock });
  const failed = (error: unknown): void => {
    door.failures.push(error);
  };
  const committed = ({ reports }: { reports: number }): void => {
    door.commits.push(reports);
  };
  const hashing = { sql, clock, random, hash: sha256, guard };
  const appender = openAppender({ ...hashing, failed, committed });
  const directory = openDirectory(sql);
  const verifier = startVerifier({ threads: 1, lookup: (kids) => directory.find(kids) });
  const receipts = openReceipts({ keyring, clock, hash: sha256, failed });
  const register = openRegister({ sql, clock, failed });
  const intake = openIntake(options.intake);
  const roles = configuredRoles([localIssuer(testKey(31).privateKey)]);
  const signed = { directory, intake, keyring, receipts, register, verifier };
  const flow = { appender, random, roles, ...signed };
  return Object.assign(door, flow, {
    guard,
    submit: (...texts: string[]): Promise<Ingested> => ingest(flow, texts),
    close: async () => {
      await appender.close();
      await register.close();
      await verifier.close();
    },
  });
}

/** A database and an archive, and as many doors as a test wants. */
export interface House {
  database: FreshDatabase;
  archive: string;
  open(options?: Partial<DoorOptions>): Door;
  doors: Door[];
}

export async function openHouse(): Promise<House> {
  const database = await freshDatabase();
  const archive = await mkdtemp(join(tmpdir(), "minutebook-door-"));
  const doors: Door[] = [];
  const open = (options: Partial<DoorOptions> = {}): Door => {
    const door = openDoor(database.writer, { archive, seed: `${doors.length}`, ...options });
    doors.push(door);
    return door;
  };
  return { database, archive, open, doors };
}

export async function closeHouse({ archive, database, doors }: House): Promise<void> {
  await Promise.all(doors.map((door) => door.close()));
  await database.drop();
  await rm(archive, { recursive: true });
}

/** A new log, with a card for hosted runners unless it says otherwise. */
export async function newLog(
  door: Door,
  unique_id: string,
  { card = CARD, ...body }: Partial<NewLog> & { card?: typeof CARD | "none" } = {},
): Promise<string> {
  const input = { unique_id, platform: "dotcom", billing_from: LONG_AGO, ...body };
  const { log } = await create(door, "p_operator", NewLog.parse(input));
  if (card !== "none") await door.appender.control(log, "rate_card", () => card);
  return log;
}

/** Enrols runners and lets the key of this seed claim them; its kid. */
export async function newAgent(
  door: Door,
  log: string,
  seed: number,
  lines: readonly Partial<EnrolledRunner>[] = [{}],
  namespaces: string[] = [],
): Promise<string> {
  const runners = lines.map((line) => ({ ...RUNNER, ...line }));
  const claim_seconds = 3_600;
  const { token } = await enrol(door, log, "ops", { namespaces, runners, claim_seconds });
  await claim(door, { token, claim: claimOf(seed, log, token) });
  return kidOf(seed);
}

export function claimOf(seed: number, log: string, token: string): string {
  return sign(seed, TYP.claim, {
    issued_at: NOW,
    log,
    public_key: jwk(seed),
    token_sha256: tokenDigest(token),
  });
}

type Change = NonNullable<Parameters<typeof reportOf>[0]>;

/** A report of the key of this seed, signed; one minute that ended at noon unless changed. */
export function reported(seed: number, log: string, change: Change = {}): string {
  return sign(seed, TYP.report, { ...reportOf({ ...change, log }) });
}

/** Any payload under any typ, canonical unless it is given as text. */
export function sign(seed: number, typ: string, payload: Json | string): string {
  const text = typeof payload === "string" ? payload : canonical(payload);
  return compact(headerSegment(kidOf(seed), typ), text, testKey(seed).sign);
}

export function digestOf(jws: string): string {
  return encodeBase64(sha256(encodeUtf8(jws)));
}

/** All entries of one instant, after checking what holds of every log: gapless, linked, hashed as they stand. */
export async function entriesOf(sql: Sql, log: string): Promise<Entry[]> {
  const look = async (tx: Transaction) => {
    const [head] = await tx<{ size: bigint; leaf: Uint8Array }[]>`
      select size, leaf from heads where log = ${log}`;
    return { head, stored: await readEntries(tx, log, 0n, 2n ** 62n) };
  };
  const mode = "isolation level repeatable read read only";
  const { head, stored } = await transact(sql, look, mode);
  let prev: Uint8Array = new Uint8Array(32);
  let at = "";
  const entries = stored.map((row, i) => {
    const entry = decodeEntry(row.bytes);
    if (typeof entry === "string") throw new Error(`entry ${i} is ${entry}`);
    const sound =
      row.index === BigInt(i) &&
      entry.index === row.index &&
      entry.log === log &&
      entry.kind === row.kind &&
      entry.at === row.at &&
      entry.at >= at &&
      equal(entry.prev, prev) &&
      equal(row.prev, prev) &&
      equal(row.leaf, leafHash(row.bytes));
    if (!sound) throw new Error(`entry ${i} breaks the chain`);
    prev = row.leaf;
    at = entry.at;
    return entry;
  });
  if (head?.size !== BigInt(entries.length) || !equal(head.leaf, prev)) {
    throw new Error("the head is not the last entry");
  }
  return entries;
}

export function ofKind<K extends Kind>(entries: readonly Entry[], kind: K): EntryOf<K>[] {
  return entries.filter((entry): entry is EntryOf<K> => entry.kind === kind);
}

export function codes({ results }: Ingested): string[] {
  return results.map(({ code }) => code);
}

/** The report inside an entry that holds one. */
export function reportIn(jws: string): Report {
  const [, payload = ""] = jws.split(".");
  return JSON.parse(Buffer.from(payload, "base64url").toString());
}
