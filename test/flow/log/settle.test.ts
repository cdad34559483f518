/** A batch, settled as a whole, against the naive reading of BYTES §3: one report at a time. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { decodeEntry, type Entry, GENESIS_PREV, HOLD_CODES } from "../../../src/core/entry.ts";
import type { Hash } from "../../../src/core/hash.ts";
import type { Judgement } from "../../../src/core/judge.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { type Candidate, type Known, type Outcome, settle } from "../../../src/flow/log/settle.ts";
import type { Head } from "../../../src/store/heads.ts";
import { kidOf, LOG, NOW, RUNNER, report } from "../../core/history.ts";
import { sha256 } from "../door.ts";

/** So few of everything that they meet all the time. */
const asked = fc.record({
  kid: fc.constantFrom("a", "b"),
  counter: fc.integer({ min: 1, max: 4 }),
  /** Other bytes for the same statement. */
  salt: fc.integer({ min: 0, max: 1 }),
  job: fc.integer({ min: 1, max: 3 }),
  figure: fc.integer({ min: 1, max: 2 }),
  outcome: fc.constantFrom("usage", "usage", "usage", "schema", "wrong-log", ...HOLD_CODES),
});
type Asked = typeof asked extends fc.Arbitrary<infer T> ? T : never;

const body: (Judgement & { kind: "usage" })["body"] = {
  billable: true,
  billing_month: "2026-11-01",
  card: "1",
  class: "standard",
  compute_ms: "60000.000000",
  enrolment: "2",
  factor: "1/1",
  limit: "",
  machine_type: "small",
  not_billable: "",
  tracking: "hosted",
  usage_month: "2026-11-01",
};

const kids = { a: kidOf(1), b: kidOf(2) };

function digest(...parts: (string | number)[]): Hash {
  return sha256(Buffer.from(JSON.stringify(parts)));
}

function candidate(ask: Asked): Candidate {
  const kid = ask.kid === "a" ? kids.a : kids.b;
  const bytes = digest(ask.kid, ask.counter, ask.salt, ask.job, ask.figure, ask.outcome);
  const signed = { jws: encodeBase64(bytes), digest: bytes, kid };
  const counter = String(ask.counter);
  if (ask.outcome === "schema" || ask.outcome === "wrong-log") {
    return { kind: "unfit", verdict: { kind: "refused", code: ask.outcome, counter, ...signed } };
  }
  const judgement: Judgement =
    ask.outcome === "usage"
      ? { kind: "usage", body, runner: RUNNER }
      : { kind: "hold", code: ask.outcome };
  const verdict = {
    kind: "signed",
    report: report({ counter, job: { id: String(ask.job) } }),
    fact: digest(ask.job, ask.figure),
    ...signed,
  } as const;
  return { kind: "report", verdict, tracking: "hosted", judgement };
}

/** What BYTES §3 says of one report after another, without batches. */
class Oracle {
  readonly #answers = new Map<string, string>();
  readonly #jobs = new Map<number, number>();

  judge(ask: Asked): string {
    const bytes = JSON.stringify(ask);
    const code = this.#answers.get(bytes) ?? this.#fresh(ask);
    this.#answers.set(bytes, code);
    return code;
  }

  #fresh({ job, figure, outcome }: Asked): string {
    if (outcome === "schema" || outcome === "wrong-log") return outcome;
    const standing = this.#jobs.get(job);
    if (standing === figure) return "duplicate";
    if (outcome !== "usage") return outcome;
    if (standing !== undefined) return "conflict";
    this.#jobs.set(job, figure);
    return "accepted";
  }
}

/** A database as far as `settle` looks at it. */
class Memory {
  readonly entries: Entry[] = [];
  readonly recorded: string[] = [];
  #head: Head = { size: 0n, leaf: GENESIS_PREV, at: NOW, controlIndex: -1n };
  #known: Known = { jobs: [], reports: [] };

  take(asks: readonly Asked[]): Outcome[] {
    const context = { log: LOG, head: this.#head, at: NOW, hash: sha256, random };
    const made = settle(asks.map(candidate), this.#known, context);
    const leaves = new Map(made.entries.map(({ index, leaf }) => [index, leaf]));
    const jobs = made.jobs.map((job) => ({ ...job, leaf: leaves.get(job.index) ?? GENESIS_PREV }));
    const outcomes = new Map(asks.map((ask, i) => [jwsOf(ask), made.outcomes[i]]));
    const reports = made.reports.map((answer) => ({
      ...answer,
      leaf: outcomes.get(encodeBase64(answer.digest))?.leaf,
    }));
    this.#known = {
      jobs: [...this.#known.jobs, ...jobs],
      reports: [...this.#known.reports, ...reports],
    };
    this.#head = made.head;
    this.recorded.push(...made.reports.map((answer) => encodeBase64(answer.digest)));
    for (const { bytes } of made.entries) {
      const entry = decodeEntry(bytes);
      if (typeof entry === "string") throw new Error(entry);
      this.entries.push(entry);
    }
    return made.outcomes;
  }
}

function jwsOf(ask: Asked): string {
  const { verdict } = candidate(ask);
  return verdict.jws;
}

function random(bytes: number): Uint8Array {
  return new Uint8Array(bytes);
}

const batches = fc.array(fc.array(asked, { minLength: 1, maxLength: 8 }), { maxLength: 6 });

test("however reports are batched, each is answered as if it came alone", () => {
  fc.assert(
    fc.property(batches, (batches) => {
      const memory = new Memory();
      const oracle = new Oracle();
      const found = batches.flatMap((asks) => memory.take(asks)).map(({ code }) => code);
      expect(found).toEqual(batches.flat().map((ask) => oracle.judge(ask)));
    }),
  );
});

test("every report has exactly one row, and every counter exactly one account of each of its bytes", () => {
  fc.assert(
    fc.property(batches, (batches) => {
      const memory = new Memory();
      for (const asks of batches) memory.take(asks);
      const distinct = new Set(batches.flat().map(jwsOf));
      expect(memory.recorded.toSorted()).toEqual([...distinct].sort());
      const accounts = memory.entries.flatMap((entry) => {
        if (entry.kind !== "disposition") return "jws" in entry.body ? [entry.body.jws] : [];
        const own = entry.body.lines.filter((line, _, lines) => accountsFor(line, lines));
        return own.map((line) => line.digest);
      });
      // A line that only notes a reused counter stands beside the account of its report.
      expect(new Set(accounts)).toEqual(distinct);
    }),
  );
});

/** All lines but a `counter-reused` beside another line, or entry, of the same bytes. */
function accountsFor(
  line: { code: string; digest: string },
  lines: readonly { code: string; digest: string }[],
): boolean {
  const others = lines.filter(({ digest, code }) => digest === line.digest && code !== line.code);
  return line.code !== "counter-reused" || others.length === 0;
}

test("a reused counter is noted once for each of its later bytes, and never for another log's", () => {
  fc.assert(
    fc.property(batches, (batches) => {
      const memory = new Memory();
      for (const asks of batches) memory.take(asks);
      const noted = memory.entries.flatMap((entry) =>
        entry.kind === "disposition"
          ? entry.body.lines.filter(({ code }) => code === "counter-reused")
          : [],
      );
      const seen = new Map<string, Set<string>>();
      for (const ask of batches.flat()) {
        if (ask.outcome === "wrong-log") continue;
        const counter = `${ask.kid} ${ask.counter}`;
        seen.set(counter, (seen.get(counter) ?? new Set()).add(jwsOf(ask)));
      }
      const expected = Array.from(seen.values()).flatMap((bytes) => [...bytes].slice(1));
      expect(noted.map(({ digest }) => digest).toSorted()).toEqual(expected.sort());
    }),
  );
});
