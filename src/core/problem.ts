/**
 * The one table of codes. A code is API: it is never renamed and never changes its meaning.
 * What a caller did is a `Problem`, answered as RFC 9457; a broken invariant is a plain `Error`.
 */

/** Code to HTTP status and title. BYTES §3 has those of a report. */
export const PROBLEMS = {
  // of a report, in the order of judgement
  malformed: [400, "Not a compact JWS as the protocol defines it"],
  "unknown-key": [401, "No such key is enrolled"],
  "bad-signature": [401, "The signature does not verify"],
  "non-canonical": [422, "The payload is not canonical JSON"],
  schema: [422, "The payload does not have the report's shape"],
  "wrong-log": [422, "The key is not enrolled for the log that the payload names"],
  "wrong-typ": [422, "The header's typ is not one of this route"],
  conflict: [409, "The job stands with other figures"],
  // of a request
  "mixed-logs": [400, "All reports of a request name one log"],
  "invalid-request": [400, "The request does not have the documented shape"],
  "too-many": [413, "More items than one request may carry"],
  "too-large": [413, "The body is larger than this route takes"],
  "body-too-slow": [408, "The body did not come in time"],
  "unsupported-media-type": [415, "The content type is not one of this route"],
  unauthenticated: [401, "A valid bearer token is needed"],
  "not-found": [404, "There is no such thing, or it is not yours to see"],
  "method-not-allowed": [405, "This path does not take that method"],
  // of a log as it is served
  "invalid-tile": [400, "No tile or bundle was ever served at a path like this one"],
  "beyond-checkpoint": [404, "The published checkpoint does not reach that far"],
  "invalid-receipt": [422, "Not a receipt of this service for just these results"],
  // of enrolment, keys and set-up
  "unknown-token": [404, "No enrolment waits for this token"],
  "token-expired": [410, "The time to claim this enrolment is over"],
  "token-used": [409, "This enrolment was claimed already"],
  "inadmissible-key": [422, "Not a canonical Ed25519 key of the prime-order subgroup"],
  "key-in-use": [409, "This key is enrolled already"],
  "key-has-ended": [409, "The key was rotated or revoked already"],
  "key-not-held": [422, "This service does not hold that key"],
  "last-log-key": [409, "A log is never without a key: add another first"],
  "successor-unsealed": [409, "No checkpoint carries the signature of a key that stays yet"],
  "log-exists": [409, "This instance has a log already"],
  "two-trackings": [409, "A runner has one tracking in a log"],
  "starts-in-the-past": [422, "Only the first of its kind may start before it is written"],
  "stale-source-version": [409, "A newer version from the source stands"],
  "another-pack": [409, "A pack keeps its namespace and its month of purchase"],
  "namespaces-needed": [
    422,
    "Group and project runners are bound to namespaces, instance runners are not",
  ],
  "invalid-factor": [422, "A factor is a decimal, a/b, or monthly_minutes/300000"],
  "project-factors-not-applicable": [422, "Only hosted runners of dotcom have project factors"],
  "approval-required": [409, "This log needs a second person's approval"],
  "approver-needed": [409, "Under dual control the role mapping names an approver"],
  "proposals-open": [409, "So many proposals of the log are open that no other can be made"],
  "proposal-ended": [409, "This proposal was approved, refused or withdrawn already"],
  "proposal-outdated": [409, "What it would take the place of is no longer what it said"],
  "proposal-expired": [410, "The time to decide about this proposal is over"],
  "same-person": [403, "Who proposed it cannot approve it"],
  "invalid-approval": [422, "Not a fresh ID token of an approver for just this proposal"],
  "token-says-too-much": [
    422,
    "The ID token holds more than an approval needs: ask for openid alone",
  ],
  "already-decided": [409, "Somebody else has decided this meanwhile, or it was done before"],
  "cannot-be-rated": [409, "What was held has no rate, or no runner that its key speaks for"],
  "job-stands": [409, "A usage of this job stands: what was held can only be rejected"],
  "correction-needed": [409, "What stands was not adjusted since the conflict"],
  "exceeds-original": [409, "More than what is left of what was charged or adjusted"],
  "already-reversed": [409, "This line was taken back already"],
  "cannot-be-reversed": [409, "What takes a credit run back is not taken back: make a new run"],
  "no-preview": [422, "No preview here has just these lines"],
  "preview-outdated": [409, "Something of this was adjusted since the preview: make a new one"],
  "credit-run-under-way": [409, "A credit run's lines are not all written yet"],
  "part-of-credit-run": [409, "A credit run is taken back as a whole, by a credit run"],
  "not-billable-usage": [422, "Only what was charged can be adjusted: billable usage"],
  "months-in-order": [409, "Months close in order, and only the last closing can be withdrawn"],
  "month-not-ready": [409, "The month cannot be closed yet: something is missing"],
  "month-closed": [409, "A month that is closed is never reopened"],
  "not-as-signed": [500, "What is kept of this is not what was signed: it is not given"],
  // of the feed
  "ack-backwards": [409, "This consumer has acknowledged more already"],
  "consumer-taken": [409, "This consumer's name belongs to who acknowledged by it first"],
  "too-many-consumers": [409, "So many consumers have acknowledged that no other name is taken"],
  "too-many-differ": [422, "More months differ than one acknowledgement may say"],
  "unknown-month": [422, "Nothing can be counted of a month that has not begun or is not billed"],
  // of exports
  "not-sealed": [409, "No archived checkpoint reaches that far yet"],
  "export-pending": [409, "The export is not made yet"],
  "no-price": [422, "The price list has no price for this"],
  "other-prices": [409, "The price list is no longer the one that this was asked for with"],
  "no-account": [409, "Nobody is said to pay for what this namespace used"],
  "export-failed": [409, "The export could not be made: ask for it again"],
  "range-not-satisfiable": [416, "The file has no bytes there"],
  // of access
  "review-incomplete": [409, "A review decides about everybody who had access, and nobody else"],
  // later, and nothing was accepted
  "rate-limited": [429, "More requests than may come in this time: try again later"],
  busy: [503, "Too much at once: try again later"],
  "log-behind": [503, "The database is behind, or differs from, the archive: nothing is written"],
  "archive-unavailable": [503, "The archive cannot be reached: nothing is written or proven"],
  "signer-unavailable": [503, "The signer of the log's keys does not answer: nothing is written"],
  "exports-unavailable": [503, "Where exports are kept cannot be reached"],
  "issuer-unavailable": [503, "The keys of the token's issuer cannot be fetched"],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type ProblemCode = keyof typeof PROBLEMS;

/** Non-secret values that help the caller; they become members of the problem document. */
export type Extension = Readonly<Record<string, string | boolean | readonly string[]>>;

export class Problem extends Error {
  override readonly name = "Problem";
  readonly code: ProblemCode;
  readonly extension: Extension;

  constructor(code: ProblemCode, extension: Extension = {}) {
    super(code);
    this.code = code;
    this.extension = extension;
  }

  get status(): number {
    return PROBLEMS[this.code][0];
  }

  get title(): string {
    return PROBLEMS[this.code][1];
  }
}

/** Of an entry whose member has the right shape, and is not what may be said there. */
export function misshapen(kind: string, member: string): never {
  throw new Problem("invalid-request", { kind, members: [member] });
}
