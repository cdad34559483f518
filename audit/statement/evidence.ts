/** What the preconditions of a month's cut-off are seen by, as entries go by (docs/months.md). */
import type { Body, EnrolledRunner, Entry } from "../../src/core/entry.ts";
import { Attestation, Report, Rotation, TYP } from "../../src/core/report.ts";
import { append, inForceDuring } from "../prefix/state.ts";
import { readStatement } from "../prefix/statement.ts";
import { monthAfter } from "../rating.ts";

interface Key {
  kid: string;
  enrolment: string;
  /** When it first did; `""` before. */
  ended: string;
}

/** By code, in the order in which the statement has them. */
export type Preconditions = { code: string; evidence: Record<string, string> }[];

export class Evidence {
  readonly #month: string;
  readonly #start: string;
  readonly #end: string;
  /** UUIDs of an enrolment; and of each all that any enrolment says. */
  readonly #enrolments = new Map<string, ReadonlySet<string>>();
  readonly #runners = new Map<string, EnrolledRunner[]>();
  readonly #keys = new Map<string, Key>();
  readonly #attested = new Map<string, string>();
  readonly #spans = new Map<string, { from: string; to: string }[]>();
  /** By index: the month that each is of. */
  readonly #open = {
    conflicts: new Map<string, string>(),
    holds: new Map<string, string>(),
    breaks: new Map<string, string>(),
  };

  #billingFrom = "";

  constructor(month: string) {
    this.#month = month;
    this.#start = `${month}T00:00:00.000Z`;
    this.#end = `${monthAfter(month)}T00:00:00.000Z`;
  }

  take(entry: Entry): void {
    const index = String(entry.index);
    switch (entry.kind) {
      case "log":
      case "mode":
        this.#billingFrom = entry.body.billing_from;
        break;
      case "enrolment":
        this.#enrol(index, entry.body);
        break;
      case "key": {
        const { enrolment, kid } = entry.body;
        this.#keys.set(kid, { kid, enrolment, ended: "" });
        break;
      }
      case "key_rotated":
        this.#finish(signerOf(entry.body.jws), entry.at);
        break;
      case "key_revoked":
        this.#finish(entry.body.kid, entry.at);
        break;
      case "attestation":
        this.#attest(entry.at, entry.body);
        break;
      case "coverage":
        this.#cover(entry.body);
        break;
      case "conflict":
        this.#open.conflicts.set(index, monthOfReport(entry.body.jws));
        break;
      case "conflict_resolved":
        this.#open.conflicts.delete(entry.body.conflict);
        break;
      case "hold":
        this.#open.holds.set(index, monthOfReport(entry.body.jws));
        break;
      case "hold_resolved":
        this.#open.holds.delete(entry.body.hold);
        break;
      case "break":
        this.#open.breaks.set(index, entry.body.month);
        break;
      case "break_resolved":
        this.#open.breaks.delete(entry.body.break);
        break;
      default:
    }
  }

  /** As of now: what a cut-off at this instant was seen by. */
  seen(at: string, before: string): Preconditions {
    const keys = [...this.#keys.values()].filter((key) => this.#owes(key));
    const attested = keys.flatMap(({ kid }) => this.#attested.get(kid) ?? []);
    const reached = [...this.#since(keys)].flatMap(([runner, since]) => this.#reach(runner, since));
    const runners = String(this.#since(keys).size);
    return [
      { code: "order", evidence: { before } },
      { code: "delay", evidence: { at, end: this.#end } },
      ...(["conflicts", "holds", "breaks"] as const).map((code) => {
        const open = [...this.#open[code].values()].filter((month) => month <= this.#month);
        return { code, evidence: { open: String(open.length) } };
      }),
      {
        code: "attestations",
        evidence: { keys: String(keys.length), oldest: attested.sort()[0] ?? "" },
      },
      { code: "coverage", evidence: { runners, until: reached.sort()[0] ?? "" } },
    ];
  }

  #enrol(index: string, { runners }: Body<"enrolment">): void {
    this.#enrolments.set(index, new Set(runners.map(({ uuid }) => uuid)));
    for (const line of runners) append(this.#runners, line.uuid, line);
  }

  #finish(kid: string, at: string): void {
    const key = this.#keys.get(kid);
    if (key?.ended === "") key.ended = at;
  }

  #attest(at: string, { jws }: Body<"attestation">): void {
    const read = readStatement(jws, TYP.attestation, Attestation);
    if (typeof read === "string" || at < this.#end || read.payload.issued_at < this.#end) return;
    this.#attested.set(read.jws.kid, read.payload.issued_at);
  }

  #cover({ from, runner_id, to }: Body<"coverage">): void {
    if (to <= this.#start || from >= this.#end) return;
    this.#spans.set(runner_id, [...(this.#spans.get(runner_id) ?? []), { from, to }]);
  }

  #owes({ ended, enrolment }: Key): boolean {
    if (this.#month.slice(0, 7) < this.#billingFrom.slice(0, 7)) return false;
    const lived = ended === "" || ended >= this.#start;
    return lived && this.#hosted(enrolment).length > 0;
  }

  #hosted(enrolment: string): readonly EnrolledRunner[] {
    const month = { start: this.#start, over: this.#end };
    const lines = Array.from(this.#enrolments.get(enrolment) ?? [], (uuid) =>
      inForceDuring(this.#runners.get(uuid), month),
    ).flat();
    return lines.filter(({ tracking }) => tracking === "hosted");
  }

  /** By runner, from where on it has to be covered. */
  #since(keys: readonly Key[]): Map<string, string> {
    const firsts = new Map<string, string>();
    for (const line of keys.flatMap(({ enrolment }) => this.#hosted(enrolment))) {
      const known = firsts.get(line.runner_id) ?? line.effective_from;
      firsts.set(line.runner_id, [known, line.effective_from].sort()[0] ?? known);
    }
    return new Map(
      Array.from(firsts, ([runner, from]) => [runner, [from, this.#start].sort()[1] ?? from]),
    );
  }

  /** How far without a gap; nowhere, where it does not even begin. */
  #reach(runner: string, since: string): string[] {
    const spans = (this.#spans.get(runner) ?? []).filter(({ to }) => to > since);
    let reached = since;
    for (const { from, to } of spans.sort((a, b) => (a.from < b.from ? -1 : 1))) {
      if (from > reached) break;
      reached = [reached, to].sort()[1] ?? reached;
    }
    return reached > since ? [reached] : [];
  }
}

function signerOf(jws: string): string {
  const read = readStatement(jws, TYP.rotation, Rotation);
  return typeof read === "string" ? "" : read.jws.kid;
}

function monthOfReport(jws: string): string {
  const read = readStatement(jws, TYP.report, Report);
  return typeof read === "string" ? "" : `${read.payload.usage.finished_at.slice(0, 7)}-01`;
}
