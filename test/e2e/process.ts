/** `minutebook serve` as a process of its own, configured as in production. */
import { type ChildProcess, type ChildProcessByStdio, spawn } from "node:child_process";
import { createPublicKey, type KeyObject } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { SignJWT } from "jose";
import { ROLES } from "../../src/core/control.ts";
import { compiled } from "../compile.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";
import { testKey } from "../signing.ts";

const ISSUER = "https://issuer.example";
const ISSUER_KEY = testKey(51).privateKey;

/** Database, archive, keys and issuers: everything that outlives a process. */
export interface Site {
  database: FreshDatabase;
  folder: string;
  environment: Record<string, string>;
  /** Of somebody whom the issuer's groups give every role. */
  token: string;
  remove(): Promise<void>;
}

export async function openSite(): Promise<Site> {
  const database = await freshDatabase();
  const folder = await mkdtemp(join(tmpdir(), "minutebook-e2e-"));
  const at = (name: string): string => join(folder, name);
  await mkdir(at("archive"));
  await secret(at("log.pem"), pem(testKey(52).privateKey));
  await secret(at("receipt.pem"), pem(testKey(53).privateKey));
  await secret(at("principal.key"), Buffer.alloc(32, 7).toString("base64"));
  const jwk = { ...createPublicKey(ISSUER_KEY).export({ format: "jwk" }), alg: "EdDSA" };
  await writeFile(at("jwks.json"), JSON.stringify({ keys: [jwk] }));
  await writeFile(at("issuers.json"), JSON.stringify([issuerEntry(at("jwks.json"))]));
  const environment = {
    MINUTEBOOK_MODE: "production",
    DATABASE_URL: database.urls.writer,
    READER_DATABASE_URL: database.urls.reader,
    ARCHIVE_URL: at("archive"),
    LOG_KEY_FILE: at("log.pem"),
    RECEIPT_KEY_FILE: at("receipt.pem"),
    PRINCIPAL_KEY_FILE: at("principal.key"),
    ISSUERS_FILE: at("issuers.json"),
    VERIFIER_THREADS: "1",
  };
  const remove = async (): Promise<void> => {
    await database.drop();
    await rm(folder, { recursive: true, force: true });
  };
  return { database, folder, environment, token: await adminToken(), remove };
}

function issuerEntry(file: string): object {
  const all = { logs: "*", namespaces: "*" };
  const grants = ROLES.map((role) => ({ claim: "groups", value: "staff", role, ...all }));
  return {
    issuer: ISSUER,
    audience: "minutebook",
    algorithms: ["EdDSA"],
    jwks: { file },
    grants,
  };
}

async function adminToken(): Promise<string> {
  return await new SignJWT({ groups: ["staff"] })
    .setProtectedHeader({ alg: "EdDSA" })
    .setIssuer(ISSUER)
    .setAudience("minutebook")
    .setSubject("somebody")
    .setIssuedAt()
    .setExpirationTime("1 h")
    .sign(ISSUER_KEY);
}

const secret = (path: string, text: string) => writeFile(path, text, { mode: 0o600 });

const pem = (key: KeyObject) => key.export({ format: "pem", type: "pkcs8" }).toString();

export interface Serving {
  /** What it said on stderr so far: its log. */
  errors: () => string;
  url: string;
  /** Resolves to the exit status, or to the signal that ended it. */
  end(signal: "SIGTERM" | "SIGINT" | "SIGKILL"): Promise<number | string | null>;
}

/** Resolves when it serves. */
export async function serve(
  environment: Record<string, string>,
  args: readonly string[] = [],
): Promise<Serving> {
  const child = start(["serve", "--json", ...args], environment);
  const errors = collect(child);
  const url = await firstUrl(child);
  if (url === undefined) throw new Error(`serve ended before it was ready: ${errors()}`);
  return {
    url,
    errors,
    end: async (signal) => {
      const ended = once(child, "exit");
      child.kill(signal);
      const [status, by] = await ended;
      return status ?? by;
    },
  };
}

/** Of a start that is to fail: how it ended, and what it said. */
export async function refusal(
  environment: Record<string, string>,
  args: readonly string[] = [],
): Promise<{ status: number | null; errors: string }> {
  const child = start(["serve", "--json", ...args], environment);
  const errors = collect(child);
  const [status] = await once(child, "close");
  return { status, errors: errors() };
}

/** Another command, to its end. */
export async function run(
  args: readonly string[],
  environment: Record<string, string>,
  program = "src/main.ts",
): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = start(args, environment, program);
  const [stdout, stderr] = [text(child.stdout), text(child.stderr)];
  const [status] = await once(child, "close");
  return { status, stdout: await stdout, stderr: await stderr };
}

export function start(
  args: readonly string[],
  environment: Record<string, string>,
  program = "src/main.ts",
): ChildProcessByStdio<null, Readable, Readable> {
  const { PATH = "" } = process.env;
  const script = compiled(new URL(`../../${program}`, import.meta.url));
  return spawn(process.execPath, [script, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH, LOG_LEVEL: "warn", ...environment },
  });
}

function collect(child: ChildProcess): () => string {
  let text = "";
  child.stderr?.on("data", (chunk: Buffer) => {
    text += chunk.toString("utf8");
  });
  return () => text;
}

async function firstUrl(child: ChildProcess): Promise<string | undefined> {
  if (child.stdout === null) return undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const { url } = JSON.parse(line) as { url: string };
    return url;
  }
  return undefined;
}
