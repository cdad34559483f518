/** Table `reports`: the one answer to each signed report, for ever. */
import type { Hash } from "../core/hash.ts";
import { packed, plainColumn } from "./columns.ts";
import type { Transaction } from "./connect.ts";

export interface CounterKey {
  kid: string;
  /** Decimal text. */
  counter: string;
}

export interface Answer extends CounterKey {
  digest: Hash;
  code: string;
  /** The entry that answers the report; undefined if none does. */
  index: bigint | undefined;
}

/** An answer on the log: `recorded` is the entry that accounts for the report. */
export interface RecordedAnswer extends Answer {
  recorded: bigint;
}

/** With the leaf hash of the entry that answers. */
export interface StandingAnswer extends Answer {
  leaf: Hash | undefined;
}

interface Row {
  kid: string;
  counter: bigint;
  digest: Hash;
  code: string;
  index: bigint | null;
  leaf: Hash | null;
}

/** Every answer that was given to one of these counters, whatever bytes it came with. */
export async function readReports(
  tx: Transaction,
  log: string,
  keys: readonly CounterKey[],
): Promise<StandingAnswer[]> {
  // Written as in jobs.ts: never more than a look by the key for each that is asked.
  const rows = await tx<Row[]>`
    select distinct
      r.kid, r.counter, r.digest, r.code, r.index,
      (select leaf from entries where log = ${log} and index = r.index) as leaf
    from unnest(
      ${plainColumn(keys.map((key) => key.kid))}::text::text[],
      ${plainColumn(keys.map((key) => key.counter))}::text::bigint[]
    ) as asked (kid, counter)
    cross join lateral (
      select kid, counter, digest, code, index
      from reports
      where log = ${log} and kid = asked.kid and counter = asked.counter
      offset 0
    ) as r
  `;
  return rows.map(({ counter, index, leaf, ...row }) => ({
    ...row,
    counter: String(counter),
    index: index ?? undefined,
    leaf: leaf ?? undefined,
  }));
}

export async function insertReports(
  tx: Transaction,
  log: string,
  answers: readonly RecordedAnswer[],
): Promise<void> {
  await tx`
    with packed as materialized (
      select decode(${packed(answers.map((answer) => answer.digest))}, 'base64') as digests
    )
    insert into reports (log, kid, counter, digest, index, code, recorded)
    select
      ${log}, kid, counter, substring(digests from 32 * n::int - 31 for 32), index, code, recorded
    from packed, unnest(
      ${plainColumn(answers.map((answer) => answer.kid))}::text::text[],
      ${plainColumn(answers.map((answer) => answer.counter))}::text::bigint[],
      ${plainColumn(answers.map((answer) => answer.index))}::text::bigint[],
      ${plainColumn(answers.map((answer) => answer.code))}::text::text[],
      ${plainColumn(answers.map((answer) => answer.recorded))}::text::bigint[]
    ) with ordinality as answer (kid, counter, index, code, recorded, n)
  `;
}
