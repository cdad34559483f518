/** Entries about money on a ledger that is made without the door. */
import type { AdjustmentLine } from "../../../src/core/control.ts";
import type { Body, Entry } from "../../../src/core/entry.ts";
import type { Closing } from "../../../src/core/month.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import type { TestLedger } from "../../ledger.ts";

const SALT = encodeBase64(new Uint8Array(16));
const HASH = encodeBase64(new Uint8Array(32));
const PERSON = { approval: "", by: "p_test", salt: SALT };

/** Posted where the ledger's prefix says. */
export function adjustMonth(
  ledger: TestLedger,
  usage_month: string,
  ...lines: Partial<AdjustmentLine>[]
): Entry {
  const body: Body<"adjustment"> = {
    ...PERSON,
    billing_month: ledger.prefix.postingMonth(usage_month),
    credit_run: "",
    first_line: "0",
    lines: lines.map((line) => ({ ...LINE, usage_month, ...line })),
    reason: "goodwill",
    ticket: "INC-1",
  };
  return ledger.append("adjustment", body);
}

const LINE = { amount: "-1.000000", entry: "", namespace_id: "1", project_id: "", reverses: "" };

/** What closes the month of a cut-off; its figures are nobody's here. */
export function closedMonth(ledger: TestLedger, { index, month }: Closing): Entry {
  return ledger.append("month_closed", {
    ...{ accounts_sha256: HASH, allocations: "0", allocations_sha256: HASH, anchor: "none" },
    ...{ anchored_by: [], close_delay_days: "3", exports: [] },
    ...{ by: "p_test", closing: String(index), month, packs_sha256: HASH, rollups_sha256: HASH },
    ...{ root: HASH, salt: SALT, size: String(index + 1n), statement_sha256: HASH },
    totals: {
      adjustment_compute_ms: "0.000000",
      billable_compute_ms: "0.000000",
      compute_ms: "0.000000",
      duration_ms: "0",
      jobs: "0",
    },
  });
}

export function account(ledger: TestLedger, body: Partial<Body<"account">>): Entry {
  return ledger.append("account", {
    ...PERSON,
    ...{ account_id: "A-1", effective_from: "2026-01-01T00:00:00.000Z", namespace_id: "1" },
    ...{ source: "portal", source_version: "1", subscription_id: "" },
    ...body,
  });
}
