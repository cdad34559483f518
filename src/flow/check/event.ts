/** What a check says while it runs, and at its end. */

/** A column that is not what the bytes give. `index`: the entry whose row it is, as far as there is one. */
export interface Finding {
  kind: "finding";
  log: string;
  index: string;
  table: string;
  column: string;
  expected: string;
  found: string;
}

/** What an entry should have said, and what it says: of the finding about its bytes. */
export type Misjudged = readonly [expected: string, found: string];

/** `index` entries of `size` are walked. */
export interface Progress {
  kind: "progress";
  log: string;
  index: string;
  size: string;
}

/** Of a kind that this version does not know: it says nothing about it, and so not "proven" either. */
export interface Unread {
  kind: "unread";
  log: string;
  index: string;
}

/** A checkpoint of which only what it says was compared: no key was given that could have signed it. */
export interface Unsigned {
  kind: "unsigned";
  log: string;
  size: string;
}

/**
 * The last event. `exit`: 0 all proven, 1 a finding, 2 could not look: an entry was unread, the
 * signature of a checkpoint was not asked for, or there was nothing to verify.
 */
export interface Summary {
  kind: "summary";
  logs: number;
  entries: string;
  findings: number;
  unread: number;
  unsigned: number;
  exit: 0 | 1 | 2;
}

export type CheckEvent = Finding | Progress | Unread | Unsigned | Summary;
