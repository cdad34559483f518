/** Entries of a day, found by halving: instants never run backwards along a log. */
import type { Transaction } from "./connect.ts";

/** What systems may change without a person. */
export const SOURCED_KINDS = ["quota", "pack", "project_class", "account"] as const;
export type SourcedKind = (typeof SOURCED_KINDS)[number];

/** Index of the first entry that is not before the instant; the size where there is none. */
export async function indexAt(
  tx: Transaction,
  log: string,
  size: bigint,
  instant: string,
): Promise<bigint> {
  let [low, high] = [0n, size];
  while (low < high) {
    const middle = (low + high) / 2n;
    const [row] = await tx<{ before: boolean }[]>`
      select at < ${instant}::text::timestamptz as before
      from entries
      where log = ${log} and index = ${middle}`;
    if (row?.before) low = middle + 1n;
    else high = middle;
  }
  return low;
}

/** Bytes of the entries of a kind with from ≤ index < to, in pages. */
export async function* readOfKind(
  tx: Transaction,
  log: string,
  kind: SourcedKind | "source_count",
  { from, to }: { from: bigint; to: bigint },
): AsyncGenerator<{ index: bigint; bytes: Uint8Array }> {
  const limit = 500;
  let after = from - 1n;
  for (;;) {
    const page = await tx<{ index: bigint; bytes: Uint8Array }[]>`
      select index, bytes
      from entries
      where log = ${log} and kind = ${kind} and index > ${after} and index < ${to}
        and kind not in ('usage', 'disposition', 'attestation')
      order by index
      limit ${limit}`;
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < limit) return;
    after = last.index;
  }
}
