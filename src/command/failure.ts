/** Why a command could not do what it was asked, as far as a person at the terminal can mend it. */
export type CommandCode =
  /** Arguments that no command takes, or that do not go together. */
  | "invalid-usage"
  /** No address of a service, no token, or no database was named. */
  | "no-server"
  | "no-token"
  | "no-database"
  /** No key of a log is there to be added or retired. */
  | "no-log-key"
  /** Nobody answers at the address. */
  | "unreachable"
  /** Somebody answers there who is not Minutebook. */
  | "unexpected-answer"
  /** A decision that the story is about was made without knowing enough. */
  | "quota-undecided"
  /** What was fetched is not the file of its manifest, or where it is to go takes no files. */
  | "not-whole"
  | "unwritable"
  /** A file that cannot be read, or does not have the shape. */
  | "unreadable-file";

/** `message` goes to the terminal after the code, and names no secret. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly code: CommandCode;

  constructor(code: CommandCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
