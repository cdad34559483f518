/** Table `first_keys`: what logs began under, written once, with entry 0. */
import type { Sql, Transaction } from "./connect.ts";

/** Verifier keys. */
export interface FirstKeys {
  checkpoint: string;
  receipt: string;
}

export async function insertFirstKeys(
  tx: Transaction,
  log: string,
  { checkpoint, receipt }: FirstKeys,
): Promise<void> {
  await tx`
    insert into first_keys (log, checkpoint, receipt)
    values (${log}, ${checkpoint}, ${receipt})
  `;
}

export async function readFirstKeys(
  sql: Sql | Transaction,
  logs: readonly string[],
): Promise<(FirstKeys & { log: string })[]> {
  return await sql<(FirstKeys & { log: string })[]>`
    select log, checkpoint, receipt
    from first_keys
    where log = any(${logs})
  `;
}
