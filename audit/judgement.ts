/** Every statement that an agent signed, judged again by the entries before it (BYTES §3). */
import type { DispositionLine, EntryOf, HoldCode } from "../src/core/entry.ts";
import type { Report } from "../src/core/report.ts";
import { decodeBase64, equal } from "../src/core/text.ts";
import type { ReadEntry, UsageEntry } from "./archive/block.ts";
import type { Findings } from "./finding.ts";
import { inForce, type Key, type State } from "./prefix/state.ts";
import type { Reading, SaidAttestation, SaidReport } from "./prefix/statement.ts";
import { type Rating, rate } from "./rating.ts";
import { ACCOUNT, type Account, type Accounts } from "./tally/accounts.ts";
import { chargeOf, type RatedBy } from "./tally/charge.ts";
import type { Counters } from "./tally/counters.ts";
import { type Jobs, STATED, type Statement } from "./tally/jobs.ts";
import type { Standing } from "./tally/standing.ts";
import type { Charge } from "./tally/usage.ts";

/** Where what one entry says is kept until all entries have spoken. */
export interface Tallies {
  accounts: Accounts;
  counters: Counters;
  jobs: Jobs;
  standing: Standing;
  charge(charge: Charge): void;
}

/** 366 days: no build takes longer, whoever lets it in. */
const DURATION_MS_MAX = 31_622_400_000n;

/** BYTES §3: what is refused with a counter that could be read, and what needs no entry of its own. */
const LINE_CODES: ReadonlySet<string> = new Set([
  "duplicate",
  "counter-reused",
  "non-canonical",
  "schema",
  "wrong-log",
]);

/** A report, and the key that the prefix knows its signer by. */
interface Signed {
  said: SaidReport;
  key: Key;
}

export class Judgement {
  readonly #state: State;
  readonly #tallies: Tallies;
  readonly #findings: Findings;
  /** Signatures that were judged. */
  signatures = 0n;

  constructor(state: State, tallies: Tallies, findings: Findings) {
    this.#state = state;
    this.#tallies = tallies;
    this.#findings = findings;
  }

  /** `said` is what the entry's JWS says, where the kind has one. Other kinds are passed over. */
  judge(entry: ReadEntry, said: Reading | undefined): void {
    if (entry.kind === "disposition") this.#disposition(entry);
    if (typeof said === "string") {
      this.#findings.add(said, { index: entry.index }, "what the entry holds cannot be read");
    } else if (said !== undefined) {
      const key = this.#signer(entry.index, said);
      if (key === undefined) return;
      if (said.kind === "attestation") this.#attestation(entry.index, entry.at, said, key);
      else this.#report(entry, { said, key });
    }
  }

  #report(entry: ReadEntry, signed: Signed): void {
    switch (entry.kind) {
      case "usage":
        this.#usage(entry, signed);
        break;
      case "conflict":
        this.#conflict(entry, signed);
        break;
      case "hold":
        this.#hold(entry, signed);
        break;
      default:
    }
  }

  #usage(entry: UsageEntry, signed: Signed): void {
    const { at, body, index } = entry;
    const released = body.hold !== undefined;
    this.#account(index, signed, released ? ACCOUNT.released : ACCOUNT.usage);
    if (body.hold !== undefined) this.#release(index, body.hold, signed.said);
    const { key } = signed;
    const report = signed.said.payload;
    const judged = judge(this.#state, key, report, at);
    const expected =
      released && typeof judged === "string" ? letIn(this.#state, key, report) : judged;
    if (typeof expected !== "string") this.#compare(index, body, expected);
    else this.#findings.add(expected, { index }, "it stands as usage");
    this.#book(index, signed.said, { as: STATED.usage });
    const { money } = this.#state;
    const { billing_month } = body;
    if (money.firstPosted === "" || billing_month < money.firstPosted) {
      money.firstPosted = billing_month;
    }
    this.#tallies.charge(chargeOf(entry, report, ratedBy(this.#state, body, report)));
  }

  /** Only what is released right before it, and is the same report, takes the hold away. */
  #release(index: bigint, hold: string, { digest }: SaidReport): void {
    const { evidence } = this.#state;
    const held = evidence.holds.get(BigInt(hold));
    const released = evidence.released === BigInt(hold);
    if (!released || held === undefined || !equal(held.digest, digest)) {
      this.#findings.add("hold-released", { index }, `entry ${hold}`);
    }
    if (!released) return;
    evidence.released = undefined;
    evidence.holds.delete(BigInt(hold));
  }

  #conflict({ at, body, index }: EntryOf<"conflict">, signed: Signed): void {
    this.#account(index, signed, ACCOUNT.conflict);
    const expected = judge(this.#state, signed.key, signed.said.payload, at);
    if (typeof expected === "string") {
      this.#findings.add(expected, { index }, "it stands as a conflict");
    }
    this.#book(index, signed.said, { as: STATED.conflict, stands: BigInt(body.stands) });
    const { finished_at } = signed.said.payload.usage;
    const open = { stands: BigInt(body.stands), finished_at, corrected: false };
    this.#state.evidence.conflicts.set(index, open);
  }

  #hold({ at, body, index }: EntryOf<"hold">, signed: Signed): void {
    this.#account(index, signed, ACCOUNT.hold);
    const expected = judge(this.#state, signed.key, signed.said.payload, at);
    if (expected !== body.code) {
      const reason = typeof expected === "string" ? expected : "none";
      this.#findings.add("hold-unfounded", { index }, `held as ${body.code}, reason: ${reason}`);
    }
    this.#book(index, signed.said, { as: STATED.hold });
    const { digest, payload } = signed.said;
    const { finished_at } = payload.usage;
    this.#state.evidence.holds.set(index, { digest: digest.slice(), finished_at });
  }

  /** Whoever holds a key that has ended must not vouch for more of its counters. */
  #attestation(index: bigint, at: string, { payload }: SaidAttestation, key: Key): void {
    const as = payload.spool === "0" ? "delivered" : "attestation";
    this.#tallies.standing.note(index, as, key.index);
    if (key.end !== undefined && BigInt(payload.counter) > key.end) {
      const detail = `counter ${payload.counter} attested, the key's last is ${key.end}`;
      this.#findings.add("key-has-ended", { index }, detail);
    } else {
      this.#tallies.counters.attest(key, payload);
      const both = payload.issued_at < at ? payload.issued_at : at;
      if (both > key.attested) key.attested = both;
      const counter = BigInt(payload.counter);
      if (counter > key.claimed) key.claimed = counter;
    }
  }

  #disposition({ body, index }: EntryOf<"disposition">): void {
    const key = this.#state.keys.get(body.kid);
    if (key === undefined) {
      this.#findings.add("jws-key", { index }, `lines of an unknown key ${body.kid}`);
      return;
    }
    let before = 0n;
    for (const line of body.lines) {
      const counter = BigInt(line.counter);
      if (counter < before) {
        this.#findings.add("line-order", { index }, `counter ${counter} after ${before}`);
      }
      before = counter;
      this.#line(index, key, line);
    }
  }

  #line(by: bigint, key: Key, { code, counter, digest, index }: DispositionLine): void {
    const { accounts, counters, standing } = this.#tallies;
    const where = { index: by };
    const reused = code === "counter-reused";
    const hash = decodeBase64(digest) ?? new Uint8Array();
    const named = index === "" ? undefined : BigInt(index);
    if (!LINE_CODES.has(code) || counter === "0") {
      this.#findings.add("line-code", where, `counter ${counter}, ${code}`);
    }
    accounts.note(hash, by, reused ? ACCOUNT.reused : ACCOUNT.line, named);
    // A report for another log uses no counter of this one.
    if (code !== "wrong-log") {
      standing.note(by, "report", key.index, { counter: BigInt(counter) });
      counters.note(key, BigInt(counter), hash, by, reused);
      key.came.add(BigInt(counter));
    }
    const fits = reused || (named !== undefined) === (code === "duplicate");
    if (!fits || (named !== undefined && named >= by)) {
      const detail = `counter ${counter}, ${code}: index ${index || "none"}`;
      this.#findings.add("line-index", where, detail);
    } else if (named !== undefined && !reused) {
      standing.name(named, by);
    }
  }

  #account(index: bigint, { key, said }: Signed, as: Account): void {
    const { digest, payload } = said;
    const counter = BigInt(payload.counter);
    this.#tallies.accounts.note(digest, index, as, index);
    this.#tallies.counters.note(key, counter, digest, index);
    key.came.add(counter);
    const isUsage = as === ACCOUNT.usage || as === ACCOUNT.released;
    const of = { counter, job: BigInt(payload.job.id) };
    this.#tallies.standing.note(index, isUsage ? "usage" : "report", key.index, of);
  }

  /** The key of whoever signed it; undefined if nobody knows it. */
  #signer(index: bigint, { holds, kid, payload }: SaidReport | SaidAttestation): Key | undefined {
    const key = this.#state.keys.get(kid);
    if (key === undefined) {
      this.#findings.add("jws-key", { index }, `signed by the unknown key ${kid}`);
      return undefined;
    }
    this.signatures += 1n;
    if (!holds) this.#findings.add("jws-signature", { index }, `by ${kid}`);
    if (payload.log !== this.#state.id) {
      this.#findings.add("jws-log", { index }, `a statement for log ${payload.log}`);
    }
    return key;
  }

  /** A runner that no enrolment names has no tracking, and then nothing stands for its jobs. */
  #book(index: bigint, { fact, payload }: SaidReport, as: Pick<Statement, "as" | "stands">): void {
    const tracking = this.#state.runners.get(payload.runner.uuid)?.[0]?.tracking;
    if (tracking === undefined) return;
    this.#tallies.jobs.note({ tracking, job: BigInt(payload.job.id), index, fact, ...as });
  }

  #compare(index: bigint, body: UsageEntry["body"], expected: Rating): void {
    for (const name of EXPECTED) {
      if (body[name] === expected[name]) continue;
      const detail = `${name} is ${body[name]}, and by the entries before ${expected[name]}`;
      this.#findings.add("rating", { index }, detail);
    }
  }
}

/** All of its members: a new one that is not named here does not compile. */
const EXPECTED = Object.keys({
  billable: 0,
  billing_month: 0,
  card: 0,
  class: 0,
  compute_ms: 0,
  enrolment: 0,
  factor: 0,
  limit: 0,
  machine_type: 0,
  not_billable: 0,
  tracking: 0,
  usage_month: 0,
} satisfies Record<keyof Rating, 0>) as (keyof Rating)[];

/** Key, enrolment, skew, cap and rate, in this order: the first reason to hold the report, or its rating. */
function judge(state: State, key: Key, report: Report, at: string): HoldCode | Rating {
  const { duration_ms, finished_at } = report.usage;
  if (key.end !== undefined && BigInt(report.counter) > key.end) return "key-ended";
  const enrolment = state.enrolments.get(key.enrolment);
  const speaks = enrolment?.runners.some(
    ({ runner_type, uuid }) =>
      uuid === report.runner.uuid &&
      (runner_type === "instance" || enrolment.namespaces.includes(report.job.root_namespace_id)),
  );
  const runner = inForce(state.runners.get(report.runner.uuid), finished_at);
  if (!speaks || runner === undefined) return "outside-enrolment";
  // Texts of one width compare as the instants do; only a report from the future costs two parses.
  const ahead = finished_at > at ? Date.parse(finished_at) - Date.parse(at) : 0;
  if (ahead > 0 && BigInt(ahead) > BigInt(state.log.skew_ms)) return "future";
  if (BigInt(duration_ms) > BigInt(state.log.duration_cap_ms)) return "over-cap";
  return rate(state, report, { enrolment: key.enrolment, runner }) ?? "no-rate";
}

/** What two persons let in is rated as if there had been no reason to hold it; without a rate it cannot be. */
function letIn(state: State, key: Key, report: Report): "no-rate" | "over-cap" | Rating {
  if (BigInt(report.usage.duration_ms) > DURATION_MS_MAX) return "over-cap";
  const runner = inForce(state.runners.get(report.runner.uuid), report.usage.finished_at);
  const rating = runner && rate(state, report, { enrolment: key.enrolment, runner });
  return rating ?? "no-rate";
}

function ratedBy(
  { cards, runners }: State,
  { card, tracking }: UsageEntry["body"],
  { runner, usage }: Report,
): RatedBy {
  const named = BigInt(card);
  return {
    runner: inForce(runners.get(runner.uuid), usage.finished_at),
    card: cards.get(tracking)?.findLast(({ index }) => index === named),
  };
}
