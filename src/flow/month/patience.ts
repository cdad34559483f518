/** A month is counted from a log of any length: what keeps others waiting for no longer does not hold for it. */
import type { Transaction } from "../../store/connect.ts";
import { limitTransaction } from "../../store/transaction.ts";

const PATIENCE_MS = 600_000;

/** For one transaction, which stands idle while another one reads. */
export async function bePatient(tx: Transaction): Promise<void> {
  await limitTransaction(tx, { lock: PATIENCE_MS, statement: PATIENCE_MS, idle: PATIENCE_MS });
}
