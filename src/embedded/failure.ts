/** Why an embedded server is not to be had. The codes are stable. */
export type EmbeddedCode =
  /** No PostgreSQL for this platform among the installed packages, or it does not run. */
  | "no-binaries"
  /** A live server holds the data folder. */
  | "data-folder-in-use"
  /** The folder holds what we did not put there, or somebody else's. */
  | "data-folder-unusable"
  /** The server ended before it was ready; the message has the last lines of its log. */
  | "start-failed";

export class EmbeddedError extends Error {
  readonly code: EmbeddedCode;

  constructor(code: EmbeddedCode, message: string, options?: ErrorOptions) {
    super(`embedded PostgreSQL: ${message}`, options);
    this.name = "EmbeddedError";
    this.code = code;
  }
}
