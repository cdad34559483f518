/** A log with everything that the feed tells of, and what it does not. */
import type { Entry, EntryOf, Kind } from "../../../src/core/entry.ts";
import type { Agent, TestRunner } from "../../builds.ts";
import { adjustMonth, closedMonth } from "../../flow/money/entries.ts";
import { TestLedger } from "../../ledger.ts";

export const RUNNERS = {
  hosted: { uuid: "hosted", runner_id: "700", machine_type: "small", tracking: "hosted" },
  free: { uuid: "free", runner_id: "701", machine_type: "free", tracking: "hosted" },
  own: { uuid: "own", runner_id: "900", machine_type: "small", tracking: "self_managed" },
} as const satisfies Record<string, TestRunner>;

const SALT = "AAAAAAAAAAAAAAAAAAAAAA==";
export const START = Date.UTC(2026, 10, 28, 12);
export const BILLING_FROM = "2026-10-15T00:00:00.000Z";

export class FedLog extends TestLedger {
  readonly agent: Agent;
  #job = 0;

  constructor(log: string, billing_from = BILLING_FROM) {
    super(log, START, { billing_from });
    this.card("hosted", { small: "1/3", free: "0" });
    this.card("self_managed", { small: "1" });
    this.agent = this.enrol(1, Object.values(RUNNERS));
  }

  /** A build of three minutes in a namespace, unless told otherwise. */
  build(
    runner: keyof typeof RUNNERS = "hosted",
    more: { duration?: bigint; namespace?: number; finished?: string; reason?: string } = {},
  ): EntryOf<"usage"> {
    this.#job += 1;
    const build = { job: this.#job, runner: RUNNERS[runner], duration: 180_000n, ...more };
    return as("usage", this.report(this.agent, build));
  }

  /** Takes all of a usage's charge back. */
  credit({ body, index }: EntryOf<"usage">, reverses = ""): EntryOf<"adjustment"> {
    const place = { entry: String(index), namespace_id: "1", project_id: "10" };
    const amount = reverses === "" ? `-${body.compute_ms}` : body.compute_ms;
    return this.adjust(body.usage_month, { ...place, amount, reverses });
  }

  adjust(month: string, ...lines: Parameters<typeof adjustMonth>[2][]): EntryOf<"adjustment"> {
    return as("adjustment", adjustMonth(this, month, ...lines));
  }

  close(month: string): EntryOf<"month_closed"> {
    this.closeMonth(month);
    return as("month_closed", closedMonth(this, { index: this.size - 1n, month }));
  }

  /** While both are still to come. */
  moveBilling(billing_from: string): void {
    const body = {
      approval: "",
      billing_from,
      by: "p_test",
      control: "single",
      salt: SALT,
    } as const;
    this.append("mode", { ...body, sources: [] });
  }

  withdraw(closing: bigint): Entry {
    const body = { approval: "", by: "p_test", closing: String(closing), salt: SALT };
    return this.append("month_closing_withdrawn", body);
  }
}

function as<K extends Kind>(kind: K, entry: Entry): EntryOf<K> {
  if (entry.kind !== kind) throw new Error(`a ${entry.kind} is no ${kind}`);
  return entry as EntryOf<K>;
}
