/**
 * What an audit can find. A code is API: it is never renamed. There are two tables, because what
 * contradicts the rules and what this tool cannot judge must never look alike.
 */

/** Contradictions, each with the rule that was broken. */
export const FINDINGS = {
  // of the archive
  "checkpoint-malformed": "A checkpoint is a signed note over origin, size and root",
  "checkpoint-signature": "A checkpoint's signature holds under the trusted key",
  "checkpoint-untrusted": "Every archived checkpoint is signed by the trusted key",
  "checkpoint-origin": "A checkpoint's origin is the trusted key's name",
  "checkpoint-size": "A checkpoint's file is named by the size that it signs",
  "checkpoint-root": "A checkpoint's root is that of the entries up to its size",
  "checkpoint-retired-key": "A checkpoint past a key's retirement does not rest on that key alone",
  "cosignature-signature": "A known witness's cosignature of a checkpoint holds",
  "quorum-missing": "The witnesses of the policy have cosigned a checkpoint",
  "checkpoint-kept": "A checkpoint that somebody kept is one of the archive's tree",
  "bundle-missing": "Every entry up to the checkpoint is in a bundle",
  "bundle-extra": "Bundles follow each other without a gap",
  "bundle-cut": "A bundle ends where its last entry ends",
  "bundle-width": "A bundle holds as many entries as its name says",
  "bundle-partial": "All files of a bundle begin with the same entries",
  "tile-missing": "Every tile that the checkpoint implies is there",
  "tile-extra": "Tiles follow each other without a gap",
  "tile-width": "A tile holds as many hashes as its name says",
  "tile-hash": "A tile holds the hashes that the entries give",
  "tile-partial": "All files of a tile begin with the same hashes",
  // of an entry and its place
  "entry-malformed": "An entry is canonical JSON of its kind's shape",
  "entry-altered": "An entry hashes to what the tile and the next entry say",
  "entry-missing": "Every index has its entry",
  "entry-extra": "An index has one entry, and it stands in its own bundle",
  "entry-swapped": "Entries stand in the order of their indices",
  "entry-foreign": "An entry names the log that it stands in",
  "entry-link": "An entry's prev is the leaf hash of the entry before",
  "entry-time": "The entries' instants never run backwards",
  "log-misplaced": "Entry 0, and no other, is the log's own",
  // of what was signed
  "jws-malformed": "A JWS has the one strict form, and the typ of its place",
  "jws-signature": "A signature holds under the key that the prefix knows",
  "jws-key": "A key is known to the prefix before it signs",
  "jws-payload": "A payload is canonical JSON of its typ's shape",
  "jws-log": "A payload names the log that it stands in",
  // of a report's judgement
  "key-ended": "A key's counters beyond its trusted range are held",
  "outside-enrolment": "A report outside its key's enrolment is held",
  future: "A report from the future is held",
  "over-cap": "A report over the duration cap is held",
  "no-rate": "A report without a rate is held",
  "hold-unfounded": "A report is held for the first reason that applies, and for no other",
  rating: "A usage entry says what rating it again gives",
  "usage-twice": "A job has one usage entry in its tracking",
  "duplicate-written": "A report of the same job and fact is a duplicate, and no new entry",
  "conflict-unfounded": "A conflict names the usage entry of its job, with another fact",
  "digest-twice": "A signed report is accounted for once",
  "line-code": "A line has a code that a log accounts for, and a counter from 1",
  "line-order": "Lines of a disposition have ascending counters",
  "line-index": "A line's index is that of the entry that stands",
  "counter-reuse": "Other bytes under a used counter are noted, and only they",
  // of control entries, as the service would have refused them
  "two-trackings": "A runner has one tracking in a log",
  "namespaces-needed": "Group and project runners have namespaces, instance runners have none",
  "starts-in-the-past": "Only the first of its kind starts before it is written",
  "unknown-enrolment": "A key names an enrolment, and its claim that enrolment's token",
  "token-expired": "A claim comes in time",
  "token-used": "An enrolment has one key, but for successors by rotation",
  "inadmissible-key":
    "A key is canonical and in the prime-order subgroup, and its kid its thumbprint",
  "key-in-use": "A key is enrolled once",
  "key-has-ended": "A key that has ended is not rotated, and attests no counter past its end",
  "unknown-key": "A revocation names a key of the log",
  "invalid-factor": "A card's factor is a number",
  "project-factors-not-applicable": "Only hosted runners of dotcom have project factors",
  "stale-source-version": "A source's older version never follows a newer one",
  "cap-without-bill": "Only a limit that bills what is beyond it has a cap",
  "pack-months": "A pack expires no sooner than it is bought",
  "another-pack": "A pack keeps its namespace and its month of purchase",
  "months-in-order": "Months close in order, and only the last closing is withdrawn",
  // of what two persons decide
  "mode-control": "Dual control is never taken back",
  "mode-billing-from": "billing_from changes only while old and new are still to come",
  "mode-sources": "No system outside has a name of the service's own",
  "approver-needed": "Under dual control the role mapping has an approver",
  "role-bound": "Only viewers are bound to namespaces",
  "issuer-key-unknown": "An issuer's key is one of those known from elsewhere (--issuer-keys)",
  "proposal-content":
    "A proposal asks for a body of its action, and says its effect, in canonical JSON",
  "proposal-expiry": "A proposal is open for 31 days at most",
  "proposal-end": "An open proposal ends once: withdrawn by its proposer, refused, or expired",
  "approval-required": "Under dual control an entry by a person has its approval",
  "approval-needless": "Under single control no entry names an approval",
  "approval-unknown": "An entry names an approval that stands before it",
  "approval-used": "An approval lets in one entry",
  "approval-unused": "An approval and the entry that it lets in stand side by side",
  "approval-content": "An approved entry is, letter by letter, what its proposer asked for",
  "approval-proposal": "An approval is of an open proposal that has not expired",
  "approval-token": "An approval rests on an ID token of the issuer whose key it names",
  "approval-signature": "An approval's token is signed by its issuer's key",
  "approval-nonce": "An approval's token has the hash of the proposal as its nonce",
  "approval-stale": "An approver has signed in and approved just now, after the proposal",
  "approval-client": "An approval's token is for one client, and for nobody beside",
  "approval-claims": "An approval's token says no more of a person than it takes to decide",
  "same-person": "Proposer and approver are two persons",
  "approver-machine": "An approver is no machine",
  "approver-role": "An approver has that role by the role mapping before",
  // of held reports, conflicts, breaks and what else others saw
  "hold-end": "A hold ends once",
  "hold-released":
    "A released report's usage stands right behind its release, and no held report's anywhere else",
  "conflict-end": "A conflict ends once, corrected only after an adjustment of what stands",
  "coverage-span": "A span of coverage is over when it is written",
  "break-form":
    "A break names entries before it, and heals by one about the same, in no person's name",
  "break-twice": "A break is opened once",
  "break-end": "A break is assigned and resolved while it is open",
  "source-count": "A source's events of a day are counted as they stand",
  "day-order": "What is written of days is of days that are over, in their order, each once",
  "access-digest": "A day's access digest is of some line",
  "access-review": "No more principals are kept than there were",
  "environment-same": "An environment is written when something has changed",
  verification: "A verification is of entries before it, and its outcome that of its findings",
  // of corrections
  "adjustment-amount": "A line of an adjustment is of some amount",
  "adjustment-month": "An adjustment is posted where usage of its month would be",
  "adjusted-usage": "An adjustment is of billable usage, under its own names",
  "exceeds-original": "No adjustments take back more than was charged, or charge more than it was",
  reversal:
    "A reversal is of a line that stands, and no more than it; a run is taken back as a whole",
  "reversal-twice": "What is adjusted is taken back once",
  "credit-run": "A credit run's lines are those that were approved: count, digest, total",
  "credit-run-line": "A credit run's lines come in their order, without a gap, in its approval",
  // of months
  "month-before":
    "A month closes when the one before is closed, and the first with all that was used",
  "month-not-ready":
    "A month is cut off when nothing of it is open, uncovered, unattested or without an account",
  "month-closed": "A month is closed once, for its cut-off, under a checkpoint of it",
  "month-root": "A closed month names a root of the tree",
  "month-figures": "A closed month's figures are what the entries give",
  "export-differs":
    "A closed month names the files that the entries give, by their rows and hashes",
  "service-order": "A service announces itself once, and no older version after a newer one",
  "log-key-form": "A log key is an admissible key under the name of its purpose",
  "log-key-order":
    "A log key is added while it is out of force, retired while in force, and never the last",
  "archive-adopted": "An adopted archive holds what was sealed before its entry",
  // of one entry's proof
  "proof-malformed": "A proof is a C2SP tlog-proof that carries its entry",
  "proof-differs": "Tiles and entries give the same proof",
  "proof-inclusion": "An entry's hash leads to the root of its checkpoint",
  "proof-build": "A proof is of the build that it is shown for",
  "proof-key": "A key's proof is of the key that signed, enrolled before in the same log",
  "proof-charge": "A build's charge is its duration times its factor",
  // of a file for finance, and its manifest
  "export-manifest": "An export's manifest is canonical JSON of its shape, signed as the log's",
  "export-root": "An export names a root of the tree, and what it is of as the log has it",
  "export-file": "An export's file is the one that its manifest says: its bytes, form and columns",
  "export-row": "Rows of an export are those that the entries give, in their order",
  "export-totals": "An export's manifest counts and sums the rows that the entries give",
  // of what the feed's consumers have
  "feed-ack": "An acknowledgement is of entries before it, goes forwards, and lists what it has to",
  "feed-counted": "Beside an acknowledgement stands what the entries give",
  "feed-break":
    "Right behind an acknowledgement stand the portal-differences that it opens and ends, and nowhere else",
  // of figures taken from the service
  "usage-row": "A row of the usage file is what the entries give",
  "usage-row-missing": "The usage file has a row for all that it covers",
  "usage-totals": "The usage file's totals are the sums of its rows",
} as const;
export type FindingCode = keyof typeof FINDINGS;

/** What stays open: never a pass, and no accusation either. */
export const OPEN = {
  "unknown-kind": "An entry of a kind that this version does not know",
  "approval-unverified": "An approval's token is signed in a way that cannot be verified here",
  "credit-run-unfinished": "A credit run of which not all lines are on the log yet",
  "anchor-unproven":
    "A closed month says that somebody outside holds it, and no known witness (--policy) does",
  unwitnessed:
    "Entries past the largest checkpoint that the policy's witnesses have cosigned (--live)",
  uncovered:
    "Entries past the largest checkpoint, as while a log is written (--live), or once it was cut",
  "usage-as-of": "The usage file reaches past the largest checkpoint",
} as const;
export type OpenCode = keyof typeof OPEN;

export interface Finding<Code extends string = FindingCode> {
  code: Code;
  /** Of the entry at fault, where it is one. */
  index?: bigint;
  /** Of the file at fault, inside the log's folder, where it is one. */
  path?: string;
  /** What was expected, and what was there. */
  detail: string;
}

const LISTED_MAX = 100;

/** Counts all, and keeps the first hundred and the one of the lowest index. */
export class Findings<Code extends string = FindingCode> {
  readonly listed: Finding<Code>[] = [];
  readonly byCode = new Map<Code, number>();
  count = 0;
  /** The finding with the lowest index; where none has an index, the one that came first. */
  first: Finding<Code> | undefined;

  add(code: Code, where: { index?: bigint; path?: string }, detail: string): void {
    const finding = { code, ...where, detail };
    this.count += 1;
    this.byCode.set(code, (this.byCode.get(code) ?? 0) + 1);
    if (this.listed.length < LISTED_MAX) this.listed.push(finding);
    this.#order(finding);
  }

  /** Takes over what an earlier look at the same found. What both have found counts once. */
  keep(earlier: Findings<Code>): void {
    for (const [code, count] of earlier.byCode) {
      const more = Math.max(count - (this.byCode.get(code) ?? 0), 0);
      this.count += more;
      this.byCode.set(code, (this.byCode.get(code) ?? 0) + more);
    }
    for (const finding of earlier.listed) {
      if (this.listed.length < LISTED_MAX && !this.listed.some((own) => isSame(own, finding))) {
        this.listed.push(finding);
      }
    }
    if (earlier.first !== undefined) this.#order(earlier.first);
  }

  #order(finding: Finding<Code>): void {
    if (this.first === undefined || isBefore(finding, this.first)) this.first = finding;
  }
}

function isSame(a: Finding<string>, b: Finding<string>): boolean {
  return a.code === b.code && a.index === b.index && a.path === b.path && a.detail === b.detail;
}

function isBefore(a: Finding<string>, b: Finding<string>): boolean {
  return a.index !== undefined && (b.index === undefined || a.index < b.index);
}

/** The audit could not look at all: not a finding, and never a pass. */
export class CannotLook extends Error {
  override readonly name = "CannotLook";
}

/**
 * Why a look ended early that had found something before: what was found stays, however the rest is
 * kept from being seen. Where nothing was found, and for every other error, it is thrown on.
 */
export function endedBy(error: unknown, { count }: Findings): string {
  if (error instanceof CannotLook && count > 0) return error.message;
  throw error;
}
