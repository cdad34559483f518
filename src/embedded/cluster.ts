/**
 * The data of one embedded server: where it lies, its passwords, its first initialisation.
 *
 *     FOLDER/postgres.json   passwords, and where the data lies if not here (mode 0600)
 *     FOLDER/postgres.log
 *     FOLDER/data            the cluster (mode 0700, of the server's account)
 *     FOLDER/socket          the unix socket (likewise)
 */
import { execFile } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import {
  chmod,
  chown,
  link,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { type Account, canEnter } from "./account.ts";
import type { Binaries } from "./binaries.ts";
import { EmbeddedError } from "./failure.ts";
import { SERVER_ENVIRONMENT } from "./server-process.ts";

const Passwords = z.strictObject({
  superuser: z.string(),
  owner: z.string(),
  writer: z.string(),
  reader: z.string(),
  auditor: z.string(),
});
export type Passwords = z.infer<typeof Passwords>;

const State = z.strictObject({ elsewhere: z.string().optional(), passwords: Passwords });
type State = z.infer<typeof State>;

export interface Cluster {
  account: Account;
  data: string;
  log: string;
  /** The folder of the unix socket. */
  socket: string;
  passwords: Passwords;
}

/** Places for what cannot lie in the caller's folder; /var/tmp outlives a restart of the machine. */
const PUBLIC_FOLDERS = ["/var/tmp", tmpdir(), "/tmp"];

/** A unix socket's path has room for 104 bytes on macOS, 108 on Linux, its NUL included. */
const SOCKET_PATH_MAX = 100;

/** The first public folder that the account can enter. */
export function publicFolder(account: Account): string {
  const found = PUBLIC_FOLDERS.find((folder) => canEnter(account, folder));
  if (found === undefined) {
    throw new EmbeddedError("data-folder-unusable", `none of ${PUBLIC_FOLDERS} can be entered`);
  }
  return found;
}

/**
 * Opens the cluster of a folder, making both if need be. Where the account cannot enter the folder
 * (root's home is 0700) the data goes to a public folder, and `postgres.json` says where.
 */
export async function openCluster(
  given: string,
  account: Account,
  binaries: Binaries,
  log: (line: string) => void,
): Promise<Cluster> {
  await mkdir(given, { recursive: true });
  const folder = await realpath(given);
  const { elsewhere, passwords } = (await readState(folder)) ?? (await writeState(folder, account));
  if (elsewhere !== undefined) log(`the database of ${folder} lies in ${elsewhere}`);
  const place = elsewhere ?? folder;
  const data = join(place, "data");
  if (!(await exists(data))) await initialise(place, data, passwords.superuser, account, binaries);
  const socket = socketFolder(place, account);
  await ensurePrivate(socket, account);
  return { account, data, log: join(folder, "postgres.log"), socket, passwords };
}

/** Where the data of a folder lies, or undefined if it has none. */
export async function findData(given: string): Promise<string | undefined> {
  const state = await readState(given);
  return state && join(state.elsewhere ?? (await realpath(given)), "data");
}

export async function findPasswords(given: string): Promise<Passwords | undefined> {
  return (await readState(given))?.passwords;
}

/** Removes what openCluster made, and the folder if nothing else is in it. */
export async function removeCluster(given: string, account: Account): Promise<void> {
  const state = await readState(given);
  if (state === undefined) return;
  const folder = await realpath(given);
  const place = state.elsewhere ?? folder;
  // The pointer goes last: whatever stops us before, the next call still knows where to go on.
  await rm(socketFolder(place, account), { recursive: true, force: true });
  await rm(join(place, "data"), { recursive: true, force: true });
  if (state.elsewhere !== undefined) await rm(state.elsewhere, { recursive: true, force: true });
  await rm(join(folder, "postgres.log"), { force: true });
  await rm(join(folder, "postgres.json"), { force: true });
  await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
  });
}

async function readState(folder: string): Promise<State | undefined> {
  const path = join(folder, "postgres.json");
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "ENOENT") throw error;
  });
  if (text === undefined) return undefined;
  try {
    return State.parse(JSON.parse(text));
  } catch (cause) {
    throw new EmbeddedError("data-folder-unusable", `${path} is not ours`, { cause });
  }
}

/** Written whole under another name, then linked: of two first starts at once, one wins. */
async function writeState(folder: string, account: Account): Promise<State> {
  if (await exists(join(folder, "data"))) {
    throw new EmbeddedError(
      "data-folder-unusable",
      `${folder}/data is there without its passwords`,
    );
  }
  const elsewhere = canEnter(account, folder) ? undefined : await makePlace(account);
  const password = () => randomBytes(24).toString("base64url");
  const passwords = {
    superuser: password(),
    owner: password(),
    writer: password(),
    reader: password(),
    auditor: password(),
  };
  const state = elsewhere === undefined ? { passwords } : { elsewhere, passwords };
  const draft = join(folder, `postgres.json.${randomBytes(6).toString("hex")}`);
  await writeFile(draft, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600, flush: true });
  try {
    await link(draft, join(folder, "postgres.json"));
    return state;
  } catch (error) {
    if (elsewhere !== undefined) await rmdir(elsewhere);
    const winner = await readState(folder);
    if (winner === undefined) throw error;
    return winner;
  } finally {
    await rm(draft);
  }
}

/** A random name: nobody can have put something there before us. */
async function makePlace(account: Account): Promise<string> {
  const place = await mkdtemp(join(publicFolder(account), "minutebook-data-"));
  await chmod(place, 0o711);
  return place;
}

/** initdb beside, then rename: a cluster that has its name is complete. */
async function initialise(
  place: string,
  data: string,
  password: string,
  account: Account,
  binaries: Binaries,
): Promise<void> {
  const nursery = await mkdtemp(join(place, "new-"));
  const passwordFile = join(nursery, "password");
  try {
    await writeFile(passwordFile, password, { mode: 0o600 });
    await give(passwordFile, account);
    await give(nursery, account);
    await promisify(execFile)(
      binaries.initdb,
      [
        `--pgdata=${join(nursery, "data")}`,
        `--pwfile=${passwordFile}`,
        "--username=postgres",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        // The same order of text on every machine, whatever its locales.
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
      ],
      { ...account, cwd: "/", env: SERVER_ENVIRONMENT },
    );
    await rename(join(nursery, "data"), data);
  } catch (cause) {
    if (await exists(data)) return; // another first start was faster
    throw new EmbeddedError("start-failed", `initdb: ${cause}`, { cause });
  } finally {
    await rm(nursery, { recursive: true, force: true });
  }
}

function socketFolder(place: string, account: Account): string {
  const beside = join(place, "socket");
  if (Buffer.byteLength(join(beside, ".s.PGSQL.65535")) <= SOCKET_PATH_MAX) return beside;
  // The same name at each start, so that a killed run leaves nothing that the next does not use.
  const name = createHash("sha256").update(place).digest("hex").slice(0, 16);
  return join(publicFolder(account), `minutebook-socket-${name}`);
}

/** A folder only the account may enter; refuses one that somebody else had ready under this name. */
async function ensurePrivate(folder: string, account: Account): Promise<void> {
  try {
    await mkdir(folder, { mode: 0o700 });
    await give(folder, account);
  } catch (cause) {
    const found = await lstat(folder).catch(() => undefined);
    const owner = account.uid ?? process.getuid?.();
    if (found?.isDirectory() && found.uid === owner && (found.mode & 0o077) === 0) return;
    throw new EmbeddedError("data-folder-unusable", `${folder} is not ours`, { cause });
  }
}

async function give(path: string, { uid, gid }: Account): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid);
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return false;
      throw error;
    },
  );
}
