/** How a command ends badly: one line with a stable code, and a status that says whose move it is. */
import { CommanderError } from "commander";
import { ConfigError } from "../config-error.ts";
import { Problem } from "../core/problem.ts";
import { EmbeddedError } from "../embedded/failure.ts";
import { RecoveryError } from "../flow/log/recovery.ts";
import { MigrationError } from "../store/migration-files.ts";
import { UnsafeRoleError } from "../store/privileges.ts";
import { ApiError } from "./api.ts";
import { CommandError } from "./failure.ts";
import { printable } from "./print.ts";

export interface Ending {
  /** Undefined: everything was said already. */
  line: string | undefined;
  /** 1: asked, and the answer was no. 2: could not ask. */
  status: 0 | 1 | 2;
}

/** Codes of node:net, node:dns and postgres.js for a server that is not to be had. */
const UNREACHABLE = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "CONNECT_TIMEOUT",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
]);

/** Of node:fs, for a path that is wrong or not ours. */
const FILES = new Set([
  "EACCES",
  "EEXIST",
  "EISDIR",
  "ENOENT",
  "ENOSPC",
  "ENOTDIR",
  "EPERM",
  "EROFS",
]);

/** Of node:net, for an address to listen at that is taken or not ours. */
const LISTENING = new Set(["EADDRINUSE", "EADDRNOTAVAIL"]);

export function endingOf(error: unknown): Ending {
  if (error instanceof CommanderError) {
    return { line: undefined, status: error.exitCode === 0 ? 0 : 2 };
  }
  if (error instanceof ApiError) return { line: printable(error.message), status: 1 };
  if (error instanceof MigrationError || error instanceof RecoveryError) {
    return ending(error.code, error.message, 1);
  }
  if (error instanceof Problem) return ending(error.code, reasonOf(error), 1);
  if (
    error instanceof CommandError ||
    error instanceof ConfigError ||
    error instanceof EmbeddedError ||
    error instanceof UnsafeRoleError
  ) {
    return ending(error.code, error.message, 2);
  }
  if (!(error instanceof Error)) return ending("internal", String(error), 2);
  const code = "code" in error ? String(error.code) : "";
  if (UNREACHABLE.has(code)) return ending("unreachable", `the database (${code})`, 2);
  if (LISTENING.has(code)) return ending("address-unavailable", error.message, 2);
  if (FILES.has(code)) return ending("unreadable-file", error.message, 2);
  if (error.name === "PostgresError") return ending("database", `${error.message} (${code})`, 2);
  // Ours to mend, not the caller's: the stack says where.
  return { line: `internal: ${error.stack ?? error.message}`, status: 2 };
}

/** What was found; callers over HTTP are not told. */
function reasonOf({ cause, title }: Problem): string {
  return cause instanceof Error ? cause.message : title;
}

function ending(code: string, message: string, status: Ending["status"]): Ending {
  return { line: printable(`${code}: ${message}`), status };
}
