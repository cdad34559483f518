/** C2SP tlog-policy: whose logs are accepted, and how many witnesses must have cosigned. */
import { parseVkey, type Vkey } from "./note.ts";
import { equal } from "./text.ts";

export interface PolicyLog {
  vkey: Vkey;
  url?: string;
}

/** `name` is the file's own; the name in its signatures is that of the key. */
export interface PolicyWitness extends PolicyLog {
  name: string;
}

/** Holds when `threshold` of its members hold: an inner one is a group, a leaf the id of a witness's key. */
export interface Quorum {
  threshold: number;
  members: readonly (Quorum | string)[];
}

/** `quorum` is that of nobody, which always holds, for `quorum none`. */
export interface Policy {
  logs: PolicyLog[];
  witnesses: PolicyWitness[];
  quorum: Quorum;
}

/** `line` counts from 1; one past the last when the whole lacks something. */
export interface PolicyProblem {
  line: number;
  problem: string;
}

const NOBODY: Quorum = { threshold: 0, members: [] };
const NONE = "none";
/** The specification's tab, newline and printable characters; what is above ASCII is opaque. */
const OTHER_CONTROLS = /[^\t\u{20}-\u{7e}\u{80}-\u{10ffff}]/u;
const NUMBER = /^[1-9][0-9]{0,3}$/;

/** A policy, or the first line that is none of one. */
export function parsePolicy(text: string): Policy | PolicyProblem {
  const draft = new Draft();
  const rows = text.split("\n");
  for (const [at, row] of rows.entries()) {
    const problem = OTHER_CONTROLS.test(row) ? "a control character" : draft.take(row);
    if (problem !== undefined) return { line: at + 1, problem };
  }
  return draft.policy() ?? { line: rows.length + 1, problem: "no quorum" };
}

/** `ids` of the keys whose cosignature on one checkpoint holds, as `witnessId` writes them. */
export function reachesQuorum({ quorum }: Policy, ids: ReadonlySet<string>): boolean {
  return holds(quorum, ids);
}

/** A key as `reachesQuorum` knows it. */
export function witnessId({ name, id }: Vkey): string {
  return `${name}+${id}`;
}

function holds({ threshold, members }: Quorum, ids: ReadonlySet<string>): boolean {
  const held = members.filter((member) =>
    typeof member === "string" ? ids.has(member) : holds(member, ids),
  );
  return held.length >= threshold;
}

/** What the lines so far have defined. */
class Draft {
  readonly #logs: PolicyLog[] = [];
  readonly #witnesses: PolicyWitness[] = [];
  /** Witnesses and groups share their names. */
  readonly #names = new Map<string, Quorum>();
  /** Each is in one group at most, so that no witness counts twice. */
  readonly #grouped = new Set<string>();
  #quorum: Quorum | undefined;

  /** What is wrong with the line, if anything is. */
  take(row: string): string | undefined {
    const [word = "", ...items] = row.split(/[ \t]+/).filter((item) => item !== "");
    if (word === "" || word.startsWith("#")) return undefined;
    switch (word) {
      case "log":
        return this.#log(items);
      case "witness":
        return this.#witness(items);
      case "group":
        return this.#group(items);
      case "quorum":
        return this.#setQuorum(items);
      default:
        return "neither log, witness, group nor quorum";
    }
  }

  policy(): Policy | undefined {
    const quorum = this.#quorum;
    return quorum && { logs: this.#logs, witnesses: this.#witnesses, quorum };
  }

  #log([key = "", url, ...more]: string[]): string | undefined {
    const vkey = parseVkey(key);
    if (vkey?.type !== "ed25519" || more.length > 0) return "not `log <Ed25519 vkey> [<url>]`";
    if (this.#logs.some((log) => isSameKey(log, vkey))) return "a log's key a second time";
    this.#logs.push(url === undefined ? { vkey } : { vkey, url });
    return undefined;
  }

  #witness([name = "", key = "", url, ...more]: string[]): string | undefined {
    const vkey = parseVkey(key);
    if (vkey?.type !== "cosignature" || more.length > 0) {
      return "not `witness <name> <Ed25519 cosignature vkey> [<url>]`";
    }
    if (this.#witnesses.some((witness) => isSameKey(witness, vkey))) {
      return "a witness's key a second time";
    }
    this.#witnesses.push(url === undefined ? { name, vkey } : { name, vkey, url });
    return this.#define(name, { threshold: 1, members: [witnessId(vkey)] });
  }

  #group([name = "", count = "", ...names]: string[]): string | undefined {
    const threshold = thresholdOf(count, names.length);
    if (threshold === undefined) return "not `group <name> <k|any|all> <member> …`";
    const members: Quorum[] = [];
    for (const member of names) {
      const known = this.#names.get(member);
      if (known === undefined) return `no ${member} before this line`;
      if (this.#grouped.has(member)) return `${member} in a group a second time`;
      this.#grouped.add(member);
      members.push(known);
    }
    return this.#define(name, { threshold, members });
  }

  #setQuorum([name = "", ...more]: string[]): string | undefined {
    if (this.#quorum !== undefined) return "a second quorum";
    const quorum = name === NONE ? NOBODY : this.#names.get(name);
    if (quorum === undefined || more.length > 0) return "not `quorum <name>` of one defined before";
    this.#quorum = quorum;
    return undefined;
  }

  #define(name: string, quorum: Quorum): string | undefined {
    if (name === NONE || this.#names.has(name)) return `the name ${name} is taken`;
    this.#names.set(name, quorum);
    return undefined;
  }
}

/** Undefined unless 1 ≤ k ≤ n. */
function thresholdOf(text: string, members: number): number | undefined {
  if (members === 0) return undefined;
  if (text === "any") return 1;
  if (text === "all") return members;
  return NUMBER.test(text) && Number(text) <= members ? Number(text) : undefined;
}

/** One key under two names is still one key. */
function isSameKey({ vkey }: PolicyLog, { publicKey }: Vkey): boolean {
  return equal(vkey.publicKey, publicKey);
}
