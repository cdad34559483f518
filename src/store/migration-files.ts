/**
 * Migration files: plain SQL in dbmate's format, so that its own tool reads them too, each under
 * a hash, and the hashes in a chain.
 */
import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

/** Stable codes: what is wrong with the files, the database, or both. */
export type MigrationCode =
  /** A file whose name or sections are not as here described. */
  | "migration-malformed"
  /** A file that was applied has other bytes, or another name, by now. */
  | "migration-edited"
  /** A file that was applied is gone. */
  | "migration-missing"
  /** A file that was not applied comes before one that was. */
  | "migration-out-of-order"
  /** The database's own record contradicts itself: somebody wrote there besides us. */
  | "migration-journal"
  /** The SQL of a file failed; nothing of it remains, unless it said `transaction:false`. */
  | "migration-failed"
  /** Another runner holds the lock. */
  | "migration-busy"
  /** Files wait to be applied. */
  | "migration-pending";

export class MigrationError extends Error {
  readonly code: MigrationCode;

  constructor(code: MigrationCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "MigrationError";
    this.code = code;
  }
}

export interface Migration {
  /** Four digits. */
  version: string;
  /** The file's name, which begins with the version. */
  name: string;
  up: string;
  /** The line of the file at which `up` begins, from 1. */
  line: number;
  transaction: boolean;
  /** Lowercase hex of the file's SHA-256, as sha256sum prints it. */
  sha256: string;
  /**
   * Lowercase hex of SHA-256(`<chain before> <sha256> <name>\n`), 64 zeros before the first: the
   * last one names all files, and a shell can recompute it.
   */
  chain: string;
}

/** All migrations of a folder in order. Throws `migration-malformed`. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".sql")).sort();
  const migrations: Migration[] = [];
  let chain = "0".repeat(64);
  for (const name of names) {
    const bytes = await readFile(join(folder, name));
    const sha256 = hex(bytes);
    chain = hex(`${chain} ${sha256} ${name}\n`);
    const version = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(name)?.[1];
    if (version === undefined) throw malformed(name, "the name is not NNNN_noun.sql");
    if (version === migrations.at(-1)?.version) throw malformed(name, "the number is taken");
    migrations.push({ version, name, ...parse(name, bytes.toString("utf8")), sha256, chain });
  }
  return migrations;
}

/**
 * The hash of a whole schema: the chain's last link, base64. It is `schema_sha256` of the log's
 * `service` entries, so that the log itself says which schema wrote it.
 */
export async function schemaHash(folder: string): Promise<string> {
  const last = (await readMigrations(folder)).at(-1);
  if (last === undefined) throw malformed(folder, "no migrations");
  return Buffer.from(last.chain, "hex").toString("base64");
}

/**
 * `-- migrate:up`, SQL, `-- migrate:down`, SQL. The second part must raise: dbmate runs an empty
 * one as a success, forgets the version and leaves the tables, and a ledger does not go back anyway.
 */
function parse(name: string, text: string): Pick<Migration, "up" | "line" | "transaction"> {
  const [before, options, up, , down, ...more] = text.split(/^--\s*migrate:(?:up|down)\b(.*)$/m);
  const marks = [...text.matchAll(/^--\s*migrate:(up|down)\b/gm)].map(([, mark]) => mark);
  if (before === undefined || options === undefined || up === undefined || down === undefined) {
    throw malformed(name, "it needs `-- migrate:up` and `-- migrate:down`");
  }
  if (more.length > 0 || marks.join() !== "up,down") throw malformed(name, "one up, then one down");
  if (withoutComments(before) !== "") throw malformed(name, "SQL before `-- migrate:up`");
  if (!/\braise\s+exception\b/i.test(withoutComments(down))) {
    throw malformed(name, "the down-section must raise an exception");
  }
  return {
    up,
    line: before.split("\n").length,
    transaction: !options.includes("transaction:false"),
  };
}

function withoutComments(sql: string): string {
  return sql.replaceAll(/--.*$/gm, "").trim();
}

function malformed(name: string, reason: string): MigrationError {
  return new MigrationError("migration-malformed", `${name}: ${reason}`);
}

function hex(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
