/**
 * The register of what proved nothing: digest, code and how often. Kept off the hot path: gathered in
 * memory, written once a second at most, bounded in both places, and never a reason for a request to
 * fail: under a flood the newest digests are dropped, and the count of them is kept.
 */
import type { Hash } from "../../core/hash.ts";
import type { ProblemCode } from "../../core/problem.ts";
import { encodeBase64 } from "../../core/text.ts";
import { instantText } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { type Refusal, recordRefusals } from "../../store/refusals.ts";
import type { Clock } from "../clock.ts";

export interface Register {
  add(digest: Hash, code: ProblemCode): void;
  /** Writes what is gathered; never rejects. */
  flush(): Promise<void>;
  /** Refusals that were not kept, because too many came at once or the database was away. */
  dropped(): number;
  close(): Promise<void>;
}

const GATHERED_MAX = 10_000;
const ROWS_MAX = 100_000;
const EVERY_MS = 1_000;

export function openRegister(options: {
  sql: Sql;
  clock: Clock;
  /** Rows in the table after a flush. */
  rowsMax?: number;
  failed?: (error: unknown) => void;
}): Register {
  const { sql, clock, rowsMax = ROWS_MAX } = options;
  let gathered = new Map<string, Refusal>();
  let timer: NodeJS.Timeout | undefined;
  let writing = Promise.resolve();
  let dropped = 0;

  async function write(refusals: readonly Refusal[]): Promise<void> {
    if (refusals.length === 0) return;
    try {
      await recordRefusals(sql, refusals, instantText(clock.now()), rowsMax);
    } catch (error) {
      dropped += refusals.length;
      options.failed?.(error);
    }
  }

  function flush(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    const refusals = [...gathered.values()];
    gathered = new Map();
    writing = writing.then(() => write(refusals));
    return writing;
  }

  return {
    add(digest, code) {
      const name = encodeBase64(digest);
      const known = gathered.get(name);
      if (known !== undefined) {
        known.times += 1n;
      } else if (gathered.size < GATHERED_MAX) {
        gathered.set(name, { digest, code, times: 1n });
        timer ??= setTimeout(() => void flush(), EVERY_MS).unref();
      } else {
        dropped += 1;
      }
    },
    flush,
    dropped: () => dropped,
    close: flush,
  };
}
