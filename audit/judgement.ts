/** Every statement that an agent signed, judged again by the entries before it (BYTES §3). */
import type { z } from "zod";
import { admissibleSignature } from "../src/core/ed25519.ts";
import type { Body, DispositionLine, Entry, EntryOf, HoldCode } from "../src/core/entry.ts";
import type { Sha256 } from "../src/core/hash.ts";
import type { CompactJws } from "../src/core/jws.ts";
import { Attestation, fact, Report, TYP } from "../src/core/report.ts";
import { decodeBase64, encodeUtf8 } from "../src/core/text.ts";
import type { Findings, OpenCode } from "./finding.ts";
import { inForce, type Key, type State } from "./prefix/state.ts";
import { readStatement } from "./prefix/statement.ts";
import { type Rating, rate } from "./rating.ts";
import { ACCOUNT, type Account, type Accounts } from "./tally/accounts.ts";
import type { Counters } from "./tally/counters.ts";
import { type Jobs, STATED, type Statement } from "./tally/jobs.ts";
import type { Standing } from "./tally/standing.ts";
import type { Charge } from "./tally/usage.ts";

/** An opinion on an admissible signature, which may take its time: 64 bytes, message, 32-byte key. */
export type VerifySoon = (
  signature: Uint8Array,
  message: Uint8Array,
  publicKey: Uint8Array,
) => boolean | Promise<boolean>;

/** Where what one entry says is kept until all entries have spoken. */
export interface Tallies {
  accounts: Accounts;
  counters: Counters;
  jobs: Jobs;
  standing: Standing;
  charge(charge: Charge): void;
}

interface Signed<P> {
  key: Key;
  payload: P;
  digest: Uint8Array;
}

export class Judgement {
  readonly #state: State;
  readonly #tallies: Tallies;
  readonly #findings: Findings;
  readonly #open: Findings<OpenCode>;
  readonly #hash: Sha256;
  readonly #verify: VerifySoon;
  #pending: Promise<void>[] = [];
  /** Signatures that were looked at. */
  signatures = 0n;

  constructor(
    state: State,
    tallies: Tallies,
    outcome: { findings: Findings; open: Findings<OpenCode> },
    { hash, verifySoon }: { hash: Sha256; verifySoon: VerifySoon },
  ) {
    this.#state = state;
    this.#tallies = tallies;
    this.#findings = outcome.findings;
    this.#open = outcome.open;
    this.#hash = hash;
    this.#verify = verifySoon;
  }

  /** Kinds without a statement are passed over. */
  judge(entry: Entry): void {
    switch (entry.kind) {
      case "usage":
        this.#usage(entry);
        break;
      case "conflict":
        this.#conflict(entry);
        break;
      case "hold":
        this.#hold(entry);
        break;
      case "disposition":
        this.#disposition(entry);
        break;
      case "attestation":
        this.#attestation(entry);
        break;
      default:
    }
  }

  /** Resolves when the signatures seen so far are judged. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending.splice(0));
  }

  #usage({ at, body, index }: EntryOf<"usage">): void {
    const released = body.hold !== undefined;
    const signed = this.#report(index, body.jws, released ? ACCOUNT.released : ACCOUNT.usage);
    if (signed === undefined) return;
    if (released) this.#open.add("released-hold", { index }, `of entry ${body.hold}`);
    const { key, payload: report } = signed;
    const expected = judge(this.#state, key, report, at);
    if (typeof expected !== "string") this.#compare(index, body, expected);
    else if (!released) this.#findings.add(expected, { index }, "it stands as usage");
    this.#book(index, report, { as: STATED.usage });
    this.#tallies.charge(chargeOf(this.#state, index, body, report));
  }

  #conflict({ at, body, index }: EntryOf<"conflict">): void {
    const signed = this.#report(index, body.jws, ACCOUNT.conflict);
    if (signed === undefined) return;
    const expected = judge(this.#state, signed.key, signed.payload, at);
    if (typeof expected === "string") {
      this.#findings.add(expected, { index }, "it stands as a conflict");
    }
    this.#book(index, signed.payload, { as: STATED.conflict, stands: BigInt(body.stands) });
  }

  #hold({ at, body, index }: EntryOf<"hold">): void {
    const signed = this.#report(index, body.jws, ACCOUNT.hold);
    if (signed === undefined) return;
    const expected = judge(this.#state, signed.key, signed.payload, at);
    if (expected !== body.code) {
      const reason = typeof expected === "string" ? expected : "none";
      this.#findings.add("hold-unfounded", { index }, `held as ${body.code}, reason: ${reason}`);
    }
    this.#book(index, signed.payload, { as: STATED.hold });
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
    const reused = code === "counter-reused";
    const hash = decodeBase64(digest) ?? new Uint8Array();
    this.#tallies.accounts.note(hash, by, reused ? ACCOUNT.reused : ACCOUNT.line);
    // A report for another log uses no counter of this one.
    if (code !== "wrong-log") this.#tallies.counters.note(key, BigInt(counter), hash, by, reused);
    const fits = reused || (index !== "") === (code === "duplicate");
    if (!fits || (index !== "" && BigInt(index) >= by)) {
      const detail = `counter ${counter}, ${code}: index ${index || "none"}`;
      this.#findings.add("line-index", { index: by }, detail);
    } else if (index !== "") {
      this.#tallies.standing.name(BigInt(index), by, code === "duplicate");
    }
  }

  #attestation({ body, index }: EntryOf<"attestation">): void {
    const signed = this.#signed(index, body.jws, TYP.attestation, Attestation);
    if (signed !== undefined) this.#tallies.counters.attest(signed.key, signed.payload);
  }

  #report(index: bigint, jws: string, account: Account): Signed<Report> | undefined {
    const signed = this.#signed(index, jws, TYP.report, Report);
    if (signed === undefined) return undefined;
    const { digest, key, payload } = signed;
    this.#tallies.accounts.note(digest, index, account);
    this.#tallies.counters.note(key, BigInt(payload.counter), digest, index);
    this.#tallies.standing.note(index, account === ACCOUNT.usage || account === ACCOUNT.released);
    return signed;
  }

  #signed<P extends { log: string }>(
    index: bigint,
    text: string,
    typ: string,
    shape: z.ZodType<P>,
  ): Signed<P> | undefined {
    const statement = readStatement(text, typ, shape);
    if (typeof statement === "string") {
      this.#findings.add(statement, { index }, `expected ${typ}`);
      return undefined;
    }
    const { jws, payload } = statement;
    const key = this.#state.keys.get(jws.kid);
    if (key === undefined) {
      this.#findings.add("jws-key", { index }, `signed by the unknown key ${jws.kid}`);
      return undefined;
    }
    this.#signature(index, jws, key);
    if (payload.log !== this.#state.id) {
      this.#findings.add("jws-log", { index }, `a statement for log ${payload.log}`);
    }
    return { key, payload, digest: this.#hash(encodeUtf8(text)) };
  }

  #signature(index: bigint, { input, kid, signature }: CompactJws, key: Key): void {
    this.signatures += 1n;
    const say = (holds: boolean): void => {
      if (!holds) this.#findings.add("jws-signature", { index }, `by ${kid}`);
    };
    const opinion = admissibleSignature(signature) && this.#verify(signature, input, key.publicKey);
    if (typeof opinion === "boolean") say(opinion);
    else this.#pending.push(opinion.then(say));
  }

  /** A runner that no enrolment names has no tracking, and then nothing stands for its jobs. */
  #book(index: bigint, report: Report, as: { as: Statement["as"]; stands?: bigint }): void {
    const tracking = this.#state.runners.get(report.runner.uuid)?.[0]?.tracking;
    if (tracking === undefined) return;
    const job = BigInt(report.job.id);
    this.#tallies.jobs.note({ tracking, job, index, fact: fact(report, this.#hash), ...as });
  }

  #compare(index: bigint, body: Body<"usage">, expected: Expected): void {
    for (const name of Object.keys(expected) as (keyof Expected)[]) {
      if (body[name] === expected[name]) continue;
      const detail = `${name} is ${body[name]}, and by the entries before ${expected[name]}`;
      this.#findings.add("rating", { index }, detail);
    }
  }
}

type Expected = Rating & { enrolment: string };

/** Key, enrolment, skew, cap and rate, in this order: the first reason to hold the report, or its rating. */
function judge(state: State, key: Key, report: Report, at: string): HoldCode | Expected {
  const { duration_ms, finished_at } = report.usage;
  if (key.end !== undefined && BigInt(report.counter) > key.end) return "key-ended";
  const enrolment = state.enrolments.get(key.enrolment);
  const lines = enrolment?.runners.filter((line) => line.uuid === report.runner.uuid) ?? [];
  const speaks = lines.some(
    (line) =>
      line.runner_type === "instance" ||
      enrolment?.namespaces.includes(report.job.root_namespace_id),
  );
  const runner = inForce(state.runners.get(report.runner.uuid), finished_at);
  if (!speaks || runner === undefined) return "outside-enrolment";
  const ahead = BigInt(Date.parse(finished_at) - Date.parse(at));
  if (ahead > BigInt(state.log.skew_ms)) return "future";
  if (BigInt(duration_ms) > BigInt(state.log.duration_cap_ms)) return "over-cap";
  const rating = rate(state, report, runner);
  return rating === undefined ? "no-rate" : { ...rating, enrolment: String(key.enrolment) };
}

/** What the entry says, right or wrong: totals are those of the log. */
function chargeOf(state: State, index: bigint, body: Body<"usage">, report: Report): Charge {
  const { job, runner, usage } = report;
  const line = inForce(state.runners.get(runner.uuid), usage.finished_at);
  return {
    index,
    keys: {
      billing_month: body.billing_month,
      usage_month: body.usage_month,
      tracking: body.tracking,
      namespace: job.root_namespace_id,
      project: job.project_id,
      runner: line?.runner_id ?? "",
      machine_type: body.machine_type,
    },
    duration: BigInt(usage.duration_ms),
    compute: BigInt(body.compute_ms.replace(".", "")),
    billable: body.not_billable === "",
  };
}
