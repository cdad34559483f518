/** Why a log is not restored, in codes that the runbook names (docs/operations.md). */
export type RecoveryCode =
  /** The database has entries that the archive has otherwise. */
  | "log-forked"
  /** The archive has no checkpoint of this log. */
  | "no-checkpoint"
  /** The newest checkpoint is no note of this log's keys. */
  | "unknown-signer"
  /** The newest checkpoint rests on a key alone that an entry below it has retired. */
  | "retired-signer"
  /** The archive does not hold what its newest checkpoint was signed for. */
  | "archive-altered"
  /** What a sealer claimed, and may have signed, is not what append would have written. */
  | "claim-unproven"
  /** The archive lacks what the database says was archived. */
  | "archive-behind"
  /** The archive holds other content of this log. */
  | "archive-contradiction"
  /** A witness has signed more of the log than the database has, or another tree of it. */
  | "witness-ahead"
  /** There is nothing to adopt an archive for. */
  | "nothing-lost"
  /** An entry of a kind that this version does not know. */
  | "later-version"
  /** The instance has another log in this database. */
  | "log-exists"
  /** Somebody wrote to the log meanwhile, again and again. */
  | "busy";

/** `message` is for operators; nothing was changed that does not stand in the archive. */
export class RecoveryError extends Error {
  override readonly name = "RecoveryError";
  readonly code: RecoveryCode;
  /** `log-forked`: the first index that differs. */
  readonly index: bigint | undefined;

  constructor(code: RecoveryCode, message: string, index?: bigint) {
    super(message);
    this.code = code;
    this.index = index;
  }
}
