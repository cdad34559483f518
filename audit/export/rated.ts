/** What rates usage, as entries tell it, for whoever does not judge them: runners by UUID, cards by index. */
import type { Body, EnrolledRunner, Entry } from "../../src/core/entry.ts";
import { Report, TYP } from "../../src/core/report.ts";
import { append, inForce } from "../prefix/state.ts";
import { readStatement } from "../prefix/statement.ts";
import type { RatedBy } from "../tally/charge.ts";

/** A usage's report, and what it was rated by. */
export interface Built extends RatedBy {
  report: Report;
}

export class Rated {
  readonly #runners = new Map<string, EnrolledRunner[]>();
  readonly #cards = new Map<string, Body<"rate_card">>();

  /** Undefined for all but usage whose report can be read. */
  take({ body, index, kind }: Entry): Built | undefined {
    if (kind === "enrolment")
      for (const line of body.runners) append(this.#runners, line.uuid, line);
    if (kind === "rate_card") this.#cards.set(String(index), body);
    if (kind !== "usage") return undefined;
    const read = readStatement(body.jws, TYP.report, Report);
    if (typeof read === "string") return undefined;
    const { payload: report } = read;
    const runner = inForce(this.#runners.get(report.runner.uuid), report.usage.finished_at);
    return { report, runner, card: this.#cards.get(body.card) };
  }
}
