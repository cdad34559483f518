/** Every signed report is accounted for exactly once: by an entry of its own, or by a line. */
import { equal } from "../../src/core/text.ts";
import type { Findings } from "../finding.ts";
import { groups, type OpenPiles, type Piles, pileOfHash } from "./piles.ts";

/** How an entry accounts for a digest. `released` and `reused` come beside another account. */
export const ACCOUNT = { usage: 0, conflict: 1, hold: 2, line: 3, released: 4, reused: 5 } as const;
export type Account = (typeof ACCOUNT)[keyof typeof ACCOUNT];

/** digest 32 · index 8 · account 1 */
const WIDTH = 41;
const DIGEST = 32;

export class Accounts {
  readonly #piles: Piles;
  readonly #record = new Uint8Array(WIDTH);
  readonly #view = new DataView(this.#record.buffer);

  constructor(open: OpenPiles) {
    this.#piles = open(WIDTH);
  }

  note(digest: Uint8Array, index: bigint, account: Account): void {
    this.#record.set(digest);
    this.#view.setBigUint64(DIGEST, index);
    this.#record[DIGEST + 8] = account;
    this.#piles.add(pileOfHash(digest), this.#record);
  }

  check(findings: Findings): void {
    for (const run of groups(this.#piles, WIDTH, DIGEST)) {
      if (run.length === 1) continue;
      const seen = new Set<number>();
      for (const record of run) {
        const account = record[DIGEST + 8] ?? 0;
        const kind = account < ACCOUNT.released ? ACCOUNT.usage : account;
        if (seen.has(kind)) {
          const index = indexOf(record);
          const first = indexOf(run[0] ?? record);
          const again = equal(run[0] ?? record, record) ? "the same entry" : `entry ${first}`;
          findings.add("digest-twice", { index }, `${again} accounts for the same report`);
        }
        seen.add(kind);
      }
    }
  }
}

function indexOf(record: Uint8Array): bigint {
  return new DataView(record.buffer, record.byteOffset).getBigUint64(DIGEST);
}
