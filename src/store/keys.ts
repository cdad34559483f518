/** Table `keys`: public keys by thumbprint, from the claims on the logs. */
import type { Sql, Transaction } from "./connect.ts";

export interface EnrolledKey {
  kid: string;
  log: string;
  /** Of its `key` entry. */
  index: bigint;
  /** 32 bytes; the same on every log, because the thumbprint is. */
  publicKey: Uint8Array;
}

/** Where these keys are enrolled; of one key, the log that took it first comes first. */
export async function readKeys(sql: Sql, kids: readonly string[]): Promise<EnrolledKey[]> {
  return await sql<EnrolledKey[]>`
    select k.kid, k.log, k.index, k.public_key as "publicKey"
    from keys k
    join entries e
      on e.log = k.log and e.index = k.index
    where k.kid = any(${kids})
    order by e.at, k.log
  `;
}

/** Bytes of all revocations, oldest first. */
export async function readRevocations(sql: Sql, log: string): Promise<Uint8Array[]> {
  const rows = await sql<{ bytes: Uint8Array }[]>`
    select bytes
    from entries
    where log = ${log} and kind = 'key_revoked'
    order by index
  `;
  return rows.map(({ bytes }) => bytes);
}

/** In the transaction that inserts its `key` entry. */
export async function insertKey(tx: Transaction, key: EnrolledKey): Promise<void> {
  await tx`
    insert into keys (kid, log, index, public_key)
    values (${key.kid}, ${key.log}, ${key.index}, ${key.publicKey})
  `;
}
