/** A whole service on a database of its own, asked over HTTP; the test holds its clock. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { vi } from "vitest";
import { localIdToken, localIssuer, localToken } from "../../src/command/issuer.ts";
import { type Service, startOn } from "../../src/command/service.ts";
import { type Config, readConfig } from "../../src/config.ts";
import { ROLES } from "../../src/core/control.ts";
import type { EnrolledRunner } from "../../src/core/entry.ts";
import { heldKeys } from "../../src/custody.ts";
import type { Role, Scope } from "../../src/flow/access/grant.ts";
import type { Issuer } from "../../src/flow/authenticate.ts";
import type { HeldKeys } from "../../src/flow/key/standing.ts";
import type { Streams } from "../../src/http/streams.ts";
import { folderArchive } from "../../src/store/archive-folder.ts";
import { folderExports } from "../../src/store/export-files-folder.ts";
import { openLog } from "../../src/telemetry.ts";
import { CARD, jwk, NOW, RUNNER } from "../core/history.ts";
import { claimOf, sign } from "../flow/door.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";
import { testKey } from "../signing.ts";
import { assertDocumented, isJson } from "./documented.ts";

const ISSUER_KEY = testKey(31).privateKey;
export const KEYS = heldKeys({
  checkpoint: [testKey(32).privateKey, testKey(34).privateKey],
  receipt: [testKey(33).privateKey],
});

export interface House extends Service {
  database: FreshDatabase;
  archive: string;
  /** What the service logged, a line for each record. */
  logged: string[];
  clock: { time: number; now(): number };
  /** Beside the local one. */
  issuers: readonly Issuer[];
  /** Other processes on the same database and archive; they end with the house. */
  besides: Service[];
  close(): Promise<void>;
}

/** @param more of its configuration */
export async function openHouse(
  more: Partial<Config> = {},
  keys: HeldKeys = KEYS,
  issuers: readonly Issuer[] = [],
): Promise<House> {
  const database = await freshDatabase();
  const archive = await mkdtemp(join(tmpdir(), "minutebook-http-"));
  const clock = { time: Date.parse(NOW), now: () => clock.time };
  const besides: Service[] = [];
  const ground = { database, archive, clock, issuers, logged: [], besides };
  const service = await started(ground, keys, more);
  const close = async (): Promise<void> => {
    for (const other of [...besides, service]) await other.stop();
    await database.drop();
    await rm(archive, { recursive: true, force: true });
  };
  return { ...service, ...ground, close };
}

/** Another process of the same service. */
export async function beside(
  house: House,
  keys: HeldKeys = KEYS,
  more: Partial<Config> = {},
  streams?: Streams,
): Promise<Service> {
  const service = await started(house, keys, more, streams);
  house.besides.push(service);
  return service;
}

type Ground = Pick<House, "database" | "archive" | "clock" | "issuers" | "logged">;

async function started(
  { database, archive, clock, issuers, logged }: Ground,
  keys: HeldKeys,
  more: Partial<Config>,
  streams?: Streams,
): Promise<Service> {
  const foundation = {
    writerUrl: database.urls.writer,
    readerUrl: database.urls.reader,
    archive: folderArchive(archive),
    exports: folderExports(join(archive, "exports")),
    keys,
    principalKey: new Uint8Array(32),
    issuers: [localIssuer(ISSUER_KEY), ...issuers],
    issuerKey: ISSUER_KEY,
    stop: async () => undefined,
  };
  const config = { ...readConfig({ VERIFIER_THREADS: "1" }), ...more };
  const log = openLog("info", { write: (line) => void logged.push(line) });
  return await startOn(foundation, { config, log, clock, ...(streams && { streams }) });
}

/** A token with these roles on all that there is, or on less. */
export async function tokenOf(
  roles: readonly Role[],
  scope: Partial<Omit<Scope, "role">> = {},
): Promise<string> {
  const grants = roles.map((role) => ({ role, logs: "*", namespaces: "*", ...scope }) as const);
  return await localToken(ISSUER_KEY, grants, { subject: roles.join(" ") });
}

/** An ID token of whom `tokenOf` makes a bearer token for these roles. */
export async function idTokenOf(
  roles: readonly Role[],
  nonce: string,
  now: number,
): Promise<string> {
  return await localIdToken(ISSUER_KEY, { nonce, subject: roles.join(" "), roles, now });
}

type At = Pick<Service, "url">;

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  json: Record<string, unknown>;
}

export interface Request {
  token?: string | undefined;
  /** Sent as JSON. */
  json?: unknown;
  /** Sent as one JWS. */
  jose?: string;
  headers?: Record<string, string>;
}

/** @throws Error for an answer that the route's contract does not have */
export async function ask(
  { url }: At,
  route: string,
  { token, json, jose, headers }: Request = {},
): Promise<Answered> {
  const [method = "GET", path = "/"] = route.split(" ");
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { "content-type": "application/json" }),
      ...(jose !== undefined && { "content-type": "application/jose" }),
      ...headers,
    },
    body: jose ?? (json === undefined ? null : JSON.stringify(json)),
  });
  const text = await response.text();
  const answered = {
    status: response.status,
    headers: response.headers,
    text,
    json: isJson(response.headers.get("content-type") ?? "") && text !== "" ? JSON.parse(text) : {},
  };
  assertDocumented(method, path, answered);
  return answered;
}

/** Everything that a test may need to be: every role on every log. */
export const everybody = (): Promise<string> => tokenOf(ROLES);

/** Of a runner that owes October nothing: it was not there. */
export const SINCE_NOVEMBER = { effective_from: "2026-11-01T00:00:00.000Z" };

/** A log with a card for hosted runners, and an agent with the key of this seed. */
export async function newLog(
  house: House,
  unique_id: string,
  seed: number,
  line: Partial<EnrolledRunner> = {},
): Promise<{ log: string; token: string }> {
  const token = await everybody();
  const log = await newLogOn(house, token, unique_id);
  await newAgent(house, log, seed, line);
  return { log, token };
}

export async function newLogOn(service: At, token: string, unique_id: string): Promise<string> {
  const of = { unique_id, platform: "dotcom", billing_from: "2026-01-01T00:00:00.000Z" };
  const body = { ...of, control: "single" };
  const { log } = (await ask(service, "POST /v1/logs", { token, json: body })).json;
  if (typeof log !== "string") throw new Error("no log");
  await ask(service, `POST /v1/logs/${log}/rate_cards`, { token, json: cardBody() });
  return log;
}

export function cardBody(): object {
  const { approval: _, by: __, salt: ___, ...card } = CARD;
  return card;
}

/** @param line of its runner, where it is not to be the usual one */
export async function newAgent(
  service: At,
  log: string,
  seed: number,
  line: Partial<EnrolledRunner> = {},
  token?: string,
): Promise<void> {
  const json = { log, namespaces: [], runners: [{ ...RUNNER, ...line }] };
  const asked = { token: token ?? (await everybody()), json };
  const secret = String((await ask(service, "POST /v1/enrolments", asked)).json["token"]);
  const claim = { token: secret, claim: claimOf(seed, log, secret) };
  const claimed = await ask(service, "POST /v1/enrolments/claim", { json: claim });
  if (claimed.status !== 201) throw new Error(`not claimed: ${claimed.text}`);
}

/** A rotation by the key of one seed to the key of another. */
export function rotationOf(seed: number, successor: number, log: string, final: string): string {
  const payload = { final_counter: final, issued_at: NOW, log, public_key: jwk(successor) };
  return sign(seed, "rotation-v1+jws", payload);
}

/** The size up to which the log is published, once that is all there is. */
export async function sealedSize(house: House, log: string): Promise<string> {
  const token = await everybody();
  const sealed = async (): Promise<string | undefined> => {
    const logs = (await ask(house, "GET /v1/logs", { token })).json["logs"];
    const found = (logs as Record<string, string>[]).find((listed) => listed["log"] === log);
    return found?.["sealed"] === found?.["size"] ? found?.["size"] : undefined;
  };
  return await vi.waitUntil(sealed, { timeout: 20_000 });
}

/** Cuts the month off, and waits until it is closed for ever; its statement as it is served. */
export async function closedMonth(house: House, log: string, month: string): Promise<string> {
  const token = await everybody();
  const cut = await ask(house, `POST /v1/months/${log}/${month}/close`, { token });
  if (cut.status !== 201) throw new Error(`not cut off: ${cut.text}`);
  return await statementOf(house, log, month);
}

/** As soon as there is one. */
export async function statementOf(house: House, log: string, month: string): Promise<string> {
  const token = await everybody();
  const served = async (): Promise<string | undefined> => {
    const path = `GET /v1/months/${log}/${month}/statement`;
    const { status, text } = await ask(house, path, { token });
    return status === 200 ? text : undefined;
  };
  return await vi.waitUntil(served, { timeout: 60_000, interval: 200 });
}
