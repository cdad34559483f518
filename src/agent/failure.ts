/** What the operator of an agent can do something about; anything else is a plain `Error`. */

export type AgentErrorCode =
  | "in-use" // another agent holds the state folder
  | "damaged" // the state folder says what this agent never wrote
  | "no-space" // a write was refused for want of room; what was written before stands
  | "not-enrolled"
  | "refused" // the server will not take it, and asking again will not help
  | "unavailable" // nobody answers, and what was asked can wait
  | "untrusted" // what the server shows is not signed by a key of the log
  | "protocol" // the server's answer is not one of this protocol
  | "unreadable"; // the folder or file to import cannot be read

/** `message` is a whole sentence for the person at the terminal; it names no secret. */
export class AgentError extends Error {
  override readonly name = "AgentError";
  readonly code: AgentErrorCode;

  constructor(code: AgentErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

const NO_SPACE = new Set(["ENOSPC", "EFBIG", "EDQUOT"]);

/** Turns a full disk, an exhausted quota or a limit on file sizes into the code that says so. */
export function writeFailure(path: string, cause: unknown): AgentError | Error {
  const code = errnoOf(cause);
  if (code !== undefined && NO_SPACE.has(code)) {
    const message = `There is no room left to write ${path} (${code}). Nothing is lost: make room and run again.`;
    return new AgentError("no-space", message, { cause });
  }
  return new Error(`agent: writing ${path} failed`, { cause });
}

/** The system's code of an error, as `ENOENT`. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string"
    ? error.code
    : undefined;
}
