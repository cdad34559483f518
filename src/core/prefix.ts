/**
 * What the entries so far decide about the next one: keys, runners, cards, classes, limits, months.
 * Folded entry by entry; nothing else ever judges a report (DESIGN §1, invariant 7).
 */
import { readClaim, readRotation } from "./claim.ts";
import { InForce, type Span } from "./effective.ts";
import type { Body, EnrolledRunner, Entry, EntryOf } from "./entry.ts";
import { LogKeys } from "./log-key.ts";
import { type Closing, Months } from "./month.ts";
import type { Tracking } from "./unit.ts";

export interface KeyState {
  readonly kid: string;
  readonly publicKey: Uint8Array;
  /** Index of the `enrolment` whose runners and namespaces the key may report. */
  readonly enrolment: bigint;
  /** Index of the `key` entry. */
  readonly index: bigint;
  /** Highest counter that is welcome; absent while the key has not ended. */
  readonly trustedUpTo?: bigint;
  /** Index of the first entry that ended it; absent as `trustedUpTo`. */
  readonly ended?: bigint;
  /** Its last counter by its own word, which a rotation is and a revocation is not. */
  readonly final?: bigint;
  readonly revoked: boolean;
}

/** A rate card and the index of its entry. */
export type Card = Body<"rate_card"> & { readonly index: bigint };

/** Of limits and classes there may be a million: kept is what judging needs, and no more. */
interface Limit {
  readonly index: bigint;
  readonly effective_from: string;
  readonly monthly_minutes: string;
  readonly source: string;
  readonly source_version: string;
}

interface ProjectClass {
  readonly class: string;
  readonly effective_from: string;
}

/** The class of a project that nobody has classified. */
const STANDARD = "standard";

export class Prefix {
  /** The log's id. */
  readonly id: string;
  readonly log: Body<"log">;
  #controlIndex = -1n;
  readonly #keys = new Map<string, KeyState>();
  /** Successor's kid to the kid of the key that named it. */
  readonly #heirs = new Map<string, string>();
  readonly #enrolments = new Map<bigint, Body<"enrolment">>();
  readonly #tokens = new Map<string, bigint>();
  readonly #claimed = new Set<bigint>();
  readonly #runners = new InForce<EnrolledRunner>();
  readonly #cards = new InForce<Card>();
  readonly #classes = new InForce<ProjectClass>();
  readonly #limits = new InForce<Limit>();
  readonly #months = new Months();
  /** As `service`: of all that there are only where entries of every kind are. */
  readonly logKeys = new LogKeys();
  #service: Body<"service"> | undefined;
  #mode: Body<"mode"> | undefined;

  constructor(entry: EntryOf<"log">) {
    this.id = entry.log;
    this.log = entry.body;
  }

  /** Index of the newest entry of a control kind; −1 while there is none. */
  get controlIndex(): bigint {
    return this.#controlIndex;
  }

  /** `dual`: what a person changes needs a second one. */
  get control(): "single" | "dual" {
    return (this.#mode ?? this.log).control;
  }

  /** Usage that finished before is not billed. */
  get billingFrom(): string {
    return (this.#mode ?? this.log).billing_from;
  }

  /** Systems whose events change limits, packs, classes and accounts without a person. */
  get sources(): readonly string[] {
    return this.#mode?.sources ?? [];
  }

  /**
   * Takes in the next entry; kinds that nobody asks about are passed over.
   * @throws Error on an entry that comes out of order, or that `admit` never let in
   */
  apply(entry: Entry): void {
    const { index } = entry;
    if (index <= this.#controlIndex) throw new Error("prefix: entries out of order");
    switch (entry.kind) {
      case "enrolment":
        this.#enrol(index, entry.body);
        break;
      case "key":
        this.#enter(index, entry.body);
        break;
      case "key_rotated":
        this.#rotate(index, entry.body);
        break;
      case "key_revoked":
        this.#revoke(index, entry.body);
        break;
      case "rate_card":
        this.#cards.add(entry.body.tracking, { ...entry.body, index });
        break;
      case "project_class":
        this.#classify(entry.body);
        break;
      case "quota":
        this.#limit(index, entry.body);
        break;
      case "month_closing":
        this.#months.close({ index, month: entry.body.month });
        break;
      case "month_closing_withdrawn":
        this.#months.withdraw();
        break;
      case "mode":
        this.#mode = entry.body;
        break;
      case "service":
        this.#service = entry.body;
        return; // it decides nothing about reports
      case "log_key":
        this.logKeys.apply(entry);
        return; // nor does it
      default:
        return;
    }
    this.#controlIndex = index;
  }

  key(kid: string): KeyState | undefined {
    return this.#keys.get(kid);
  }

  /** Every key that was ever enrolled, in the order of their entries. */
  get keys(): Iterable<KeyState> {
    return this.#keys.values();
  }

  /** The key whose rotation named this kid, before the successor's own `key` entry stands and after. */
  predecessor(kid: string): KeyState | undefined {
    return this.#keys.get(this.#heirs.get(kid) ?? "");
  }

  enrolment(index: bigint): Body<"enrolment"> | undefined {
    return this.#enrolments.get(index);
  }

  /** Index of the enrolment that a token's SHA-256 (padded base64) opens. */
  enrolmentOfToken(tokenSha256: string): bigint | undefined {
    return this.#tokens.get(tokenSha256);
  }

  /** Whether some key was enrolled with the enrolment's token. */
  claimed(enrolment: bigint): boolean {
    return this.#claimed.has(enrolment);
  }

  /** Every line of every enrolment; of one runner the oldest first. */
  get runners(): readonly EnrolledRunner[] {
    return this.#runners.values();
  }

  /** The one tracking that a runner has in this log, whichever enrolment named it. */
  tracking(uuid: string): Tracking | undefined {
    return this.#runners.history(uuid)[0]?.tracking;
  }

  /** What was said last of a runner, from whenever on that holds. */
  newestLine(uuid: string): EnrolledRunner | undefined {
    return this.#runners.history(uuid).at(-1);
  }

  /**
   * What a runner that this enrolment names is at an instant. Machine type and number belong to the
   * runner and not to the enrolment: the line in force counts, from whichever enrolment of the log.
   */
  runner(uuid: string, enrolment: bigint, instant: string): EnrolledRunner | undefined {
    const named = this.#enrolments.get(enrolment)?.runners.some((line) => line.uuid === uuid);
    return named ? this.#runners.at(uuid, instant) : undefined;
  }

  /** As `runner`, of each that the enrolment names, at any instant of a span. */
  runnersDuring(enrolment: bigint, span: Span): EnrolledRunner[] {
    const named = this.#enrolments.get(enrolment)?.runners.map(({ uuid }) => uuid);
    return Array.from(new Set(named), (uuid) => this.#runners.during(uuid, span)).flat();
  }

  card(tracking: Tracking, instant: string): Card | undefined {
    return this.#cards.at(tracking, instant);
  }

  /** All cards of a tracking, oldest entry first. */
  cards(tracking: Tracking): readonly Card[] {
    return this.#cards.history(tracking);
  }

  /** `standard` where no class is in force. */
  projectClass(projectId: string, instant: string): string {
    return this.#classes.at(projectId, instant)?.class ?? STANDARD;
  }

  classes(projectId: string): readonly ProjectClass[] {
    return this.#classes.history(projectId);
  }

  limit(namespaceId: string, instant: string): Limit | undefined {
    return this.#limits.at(namespaceId, instant);
  }

  limits(namespaceId: string): readonly Limit[] {
    return this.#limits.history(namespaceId);
  }

  /** The last month closing that was not withdrawn. */
  get lastClosing(): Closing | undefined {
    return this.#months.last;
  }

  postingMonth(usageMonth: string): string {
    return this.#months.posting(usageMonth);
  }

  /** The newest that was applied: of all that there are only where entries of every kind are. */
  get service(): Body<"service"> | undefined {
    return this.#service;
  }

  #enrol(index: bigint, body: Body<"enrolment">): void {
    this.#enrolments.set(index, body);
    this.#tokens.set(body.token_sha256, index);
    for (const line of body.runners) this.#runners.add(line.uuid, line);
  }

  #classify({ class: name, effective_from, project_id }: Body<"project_class">): void {
    this.#classes.add(project_id, { class: name, effective_from });
  }

  #limit(index: bigint, body: Body<"quota">): void {
    const { effective_from, monthly_minutes, namespace_id, source, source_version } = body;
    const limit = { effective_from, index, monthly_minutes, source, source_version };
    this.#limits.add(namespace_id, limit);
  }

  #enter(index: bigint, { enrolment, jws, kid }: Body<"key">): void {
    const claim = readClaim(jws);
    if (claim?.signer !== kid) throw new Error("prefix: a key without its claim");
    const state = { kid, publicKey: claim.publicKey, enrolment: BigInt(enrolment), index };
    this.#keys.set(kid, { ...state, revoked: false });
    this.#claimed.add(state.enrolment);
  }

  #rotate(index: bigint, { jws }: Body<"key_rotated">): void {
    const rotation = readRotation(jws);
    if (rotation === undefined) throw new Error("prefix: a rotation that cannot be read");
    const { final_counter: counter } = rotation.payload;
    this.#end(index, rotation.signer, { counter, final: BigInt(counter), revoked: false });
    this.#heirs.set(rotation.thumbprint, rotation.signer);
  }

  #revoke(index: bigint, { kid, last_trusted_counter }: Body<"key_revoked">): void {
    this.#end(index, kid, { counter: last_trusted_counter, revoked: true });
  }

  /** Of several ends the lowest counts. */
  #end(
    index: bigint,
    kid: string,
    { counter, revoked, ...own }: { counter: string; final?: bigint; revoked: boolean },
  ): void {
    const key = this.#keys.get(kid);
    if (key === undefined) throw new Error("prefix: the end of an unknown key");
    const end = BigInt(counter);
    const { ended = index, trustedUpTo = end } = key;
    this.#keys.set(kid, {
      ...key,
      ...own,
      ended,
      trustedUpTo: end < trustedUpTo ? end : trustedUpTo,
      revoked: key.revoked || revoked,
    });
  }
}
