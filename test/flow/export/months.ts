/** Histories of a log over three months, with all that its files for the portal are made of. */
import fc from "fast-check";
import { CREDIT_RUN_SOURCE } from "../../../src/core/beside.ts";
import { formatSignedComputeMs } from "../../../src/core/charge.ts";
import type { Row } from "../../../src/core/export/tables.ts";
import type { Origin, Source } from "../../../src/flow/export/source.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { snapshot } from "../../../src/flow/usage/show.ts";
import type { Agent } from "../../builds.ts";
import { TestLedger } from "../../ledger.ts";
import type { FreshDatabase } from "../../postgres.ts";
import { reportIn } from "../door.ts";
import { clock, HOSTED, OWN } from "../history.ts";
import { account, adjustMonth } from "../money/entries.ts";
import { LIMIT, PACK, withdraw } from "../quota/logs.ts";

const SALT = `${"A".repeat(22)}==`;
const SAID = { approval: "", by: "p_test", salt: SALT, source: "test" } as const;
const LONG_AGO = "2020-01-01T00:00:00.000Z";
const LARGE = {
  uuid: "r-3",
  runner_id: "9",
  machine_type: 'lärge, ="1"',
  tracking: "hosted",
} as const;
export const MONTHS = ["2026-09-01", "2026-10-01", "2026-11-01"] as const;

type Choice = typeof Choices extends fc.Arbitrary<infer T> ? T : never;
const Choices = fc.record({
  kind: fc.constantFrom(
    ...[...Array<"build">(9).fill("build"), ...Array<"adjust">(3).fill("adjust"), "limit"],
    ...(["pack", "account", "card", "close", "close", "withdraw", "refresh", "ask"] as const),
  ),
  runner: fc.constantFrom(HOSTED, HOSTED, LARGE, OWN),
  namespace: fc.integer({ min: 1, max: 3 }),
  project: fc.integer({ min: 10, max: 12 }),
  duration: fc.bigInt({ min: 0n, max: 2_000_000n }),
  finished: fc.constantFrom(
    ...["2026-09-30T23:59:59.999Z", "2026-10-01T00:00:00.000Z", "2026-10-31T12:00:00.000Z"],
    ...["2026-10-31T23:59:59.999Z", "2026-11-01T00:00:00.000Z", "2026-11-02T07:00:00.000Z"],
  ),
  reason: fc.constantFrom("", "", "script_failure", "runner_system_failure"),
  minutes: fc.constantFrom("0", "1", "7", "30"),
  beyond: fc.constantFrom("stop" as const, "bill" as const),
  cap: fc.constantFrom("", "0", "2"),
  month: fc.constantFrom(...MONTHS),
  usage: fc.option(fc.nat(30), { nil: undefined }),
  amount: fc.bigInt({ min: -(10n ** 12n), max: 10n ** 11n }),
});
export const histories = fc.array(Choices, { minLength: 25, maxLength: 60, size: "max" });
/** Far below what is read at once elsewhere: a page ends in the middle of everything. */
export const pageSizes = fc.integer({ min: 1, max: 3 });

type ToldBuild = Pick<
  Choice,
  "duration" | "finished" | "namespace" | "project" | "reason" | "runner"
>;
/** A minute of compute on the hosted machine, of namespace 1. */
export const MINUTE = {
  ...{ runner: HOSTED, namespace: 1, project: 10, duration: 180_000n },
  ...{ finished: "2026-10-31T12:00:00.000Z", reason: "" },
} as const satisfies ToldBuild;

/** A log that is told a history, entry after entry. */
export class Telling {
  readonly ledger: TestLedger;
  readonly #agent: Agent;
  readonly #db: FreshDatabase;
  #jobs = 0;
  #version = 1;
  #sealed = 0n;

  constructor(db: FreshDatabase, log: string) {
    this.#db = db;
    this.ledger = new TestLedger(log, Date.UTC(2026, 10, 20), {
      billing_from: `${MONTHS[1]}T00:00:00.000Z`,
    });
    this.#card("1/3");
    this.ledger.card("self_managed", { "*": "3/2" });
    this.#agent = this.ledger.enrol(1, [HOSTED, LARGE, OWN]);
    const project = { class: "open_source", effective_from: LONG_AGO, project_id: "12" };
    this.ledger.append("project_class", { ...SAID, ...project });
  }

  tell(choice: Choice): void {
    const { ledger } = this;
    this.#version += 1;
    const source_version = String(this.#version);
    const { namespace, minutes, beyond } = choice;
    const namespace_id = String(namespace);
    if (choice.kind === "build") this.build(choice);
    else if (choice.kind === "adjust") this.#adjust(choice);
    else if (choice.kind === "card") this.#card(`${choice.project}/7`);
    else if (choice.kind === "limit") {
      const cap = beyond === "bill" ? choice.cap : "";
      const limit = { namespace_id, source_version, beyond, cap, monthly_minutes: minutes };
      ledger.append("quota", { ...LIMIT, ...limit });
    } else if (choice.kind === "pack") {
      const pack = {
        namespace_id,
        source_version,
        minutes,
        pack_id: `order ${choice.project % 2}/${namespace}`,
        ...(choice.project === 12 && { source: CREDIT_RUN_SOURCE }),
      };
      ledger.append("pack", { ...PACK, ...pack, purchased_in: MONTHS[1] });
    } else if (choice.kind === "account") {
      const whose = choice.project === 10 ? "" : namespace_id;
      const account_id = `A-${3 - namespace}`;
      account(ledger, { namespace_id: whose, account_id, source_version });
    } else if (choice.kind === "close") this.#close();
    else if (choice.kind === "withdraw") this.#withdraw();
  }

  build({ duration, finished, namespace, project, reason, runner }: ToldBuild): void {
    this.#jobs += 1;
    const build = { job: this.#jobs, duration, finished, namespace, project, reason, runner };
    this.ledger.report(this.#agent, build);
  }

  async load(): Promise<void> {
    await this.ledger.load(this.#db.owner);
  }

  async fold(): Promise<void> {
    await this.load();
    if (this.ledger.size > this.#sealed) await this.ledger.seal(this.#db.owner);
    this.#sealed = this.ledger.size;
    await refresh({ sql: this.#db.writer, clock });
  }

  /** Amounts as they come: what may be adjusted is not asked here. */
  #adjust({ amount, namespace, project, month, usage }: Choice): void {
    const usages = this.ledger.written.flatMap(({ entry }) =>
      entry.kind === "usage" && entry.body.billable ? [entry] : [],
    );
    const entry = usage === undefined ? undefined : usages[usage];
    const job = entry && reportIn(entry.body.jws).job;
    adjustMonth(this.ledger, entry?.body.usage_month ?? month, {
      amount: formatSignedComputeMs(amount),
      entry: entry === undefined ? "" : String(entry.index),
      namespace_id: job?.root_namespace_id ?? String(namespace),
      project_id: job?.project_id ?? (project === 10 ? "" : String(project)),
    });
  }

  #close(): void {
    const last = this.ledger.prefix.lastClosing?.month ?? "";
    const next = MONTHS.slice(0, 2).find((month) => month > last);
    if (next !== undefined) this.ledger.closeMonth(next);
  }

  #withdraw(): void {
    const last = this.ledger.prefix.lastClosing;
    if (last !== undefined) withdraw(this.ledger, last.index);
  }

  #card(small: string): void {
    this.ledger.append("rate_card", {
      ...SAID,
      effective_from: LONG_AGO,
      not_billable: ["runner_system_failure"],
      project_factors: { open_source: "1/7" },
      runner_factors: { small, "*": "2" },
      tracking: "hosted",
    });
  }
}

/** All rows of a file, of one snapshot. */
export async function rowsOf(
  db: FreshDatabase,
  source: Source,
  { month, ...of }: Pick<Origin, "asOf" | "log" | "pageRows"> & { month: string },
): Promise<Row[]> {
  return await snapshot(db.reader, async (tx) => {
    const rows: Row[] = [];
    const { pages } = source({ tx, ...of, parameters: { month } });
    for await (const page of pages) rows.push(...page);
    return rows;
  });
}
