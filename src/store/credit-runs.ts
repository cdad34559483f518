/** Table `credit_runs`, and how much of each stands on the log (migrations/0008). */
import type { Sql, Transaction } from "./connect.ts";
import { pagesOf } from "./pages.ts";

type Reader = Sql | Transaction;

export interface CreditRunRow {
  index: bigint;
  form: "zero_rate" | "credit" | "goodwill_pack";
  lines: bigint;
  /** Six decimals, signed. */
  total: string;
  /** The run that this one takes back. */
  reverses: bigint | null;
  /** The run that takes this one back. */
  reversed: bigint | null;
}

const runs = (sql: Reader) => sql`
  select run.index, run.form, run.lines, run.total, run.reverses, back.index as reversed
  from credit_runs as run
  left join credit_runs as back
    on back.log = run.log and back.reverses = run.index`;

export async function readCreditRun(
  sql: Reader,
  log: string,
  index: bigint,
): Promise<CreditRunRow | undefined> {
  const [run] = await sql<CreditRunRow[]>`
    ${runs(sql)}
    where run.log = ${log} and run.index = ${index}`;
  return run;
}

/** Newest first, those below an index, a page at a time. */
export async function readCreditRuns(
  sql: Reader,
  log: string,
  { below, limit }: { below: bigint; limit: number },
): Promise<CreditRunRow[]> {
  return await sql<CreditRunRow[]>`
    ${runs(sql)}
    where run.log = ${log} and run.index < ${below}
    order by run.index desc
    limit ${limit}`;
}

/** The newest run of each log. */
export async function readNewestRuns(sql: Reader): Promise<{ log: string; index: bigint }[]> {
  return await sql<{ log: string; index: bigint }[]>`
    select log, max(index) as index
    from credit_runs
    group by log`;
}

/** Index of the newest `adjustment` entry of a run. */
export async function readNewestLine(
  sql: Reader,
  log: string,
  run: bigint,
): Promise<bigint | undefined> {
  const [newest] = await sql<{ index: bigint }[]>`
    select index
    from adjustments
    where log = ${log} and credit_run = ${run}
    order by index desc
    limit 1`;
  return newest?.index;
}

/** Bytes of the newest `pack` entry that names a run. */
export async function readNewestPack(
  sql: Reader,
  log: string,
  run: bigint,
): Promise<Uint8Array | undefined> {
  const [newest] = await sql<{ bytes: Uint8Array }[]>`
    select bytes
    from entries
    where log = ${log} and kind = 'pack' and entry_credit_run(bytes) is not null
      and entry_credit_run(bytes) = ${run}
    order by index desc
    limit 1`;
  return newest?.bytes;
}

/** Bytes of the `pack` entries that name a run, in their order; those that take them back come last. */
export async function* readPacksOfRun(
  tx: Transaction,
  log: string,
  run: bigint,
): AsyncGenerator<Uint8Array> {
  const query = tx`
    select bytes
    from entries
    where log = ${log} and kind = 'pack' and entry_credit_run(bytes) is not null
      and entry_credit_run(bytes) = ${run}
    order by index
  `;
  const pages = pagesOf<{ bytes: Uint8Array }>(tx, query, PAGE_ROWS);
  for await (const page of pages) for (const { bytes } of page) yield bytes;
}

/** A run's lines in their order, as entries 0 … asOf−1 have them. */
export async function* readAppliedLines(
  tx: Transaction,
  log: string,
  run: bigint,
  asOf: bigint,
): AsyncGenerator<AppliedLine> {
  const query = tx`
    select
      concat(index, '/', line) as name, namespace_id::text,
      coalesce(project_id::text, '') as project_id, usage_month, amount,
      coalesce(entry::text, '') as entry, adjusted
    from (
      select *, sum(amount) over (partition by entry) as adjusted
      from adjustments
      where log = ${log} and index < ${asOf}
    ) as line
    where credit_run = ${run}
    order by index, line
  `;
  const pages = pagesOf<AppliedLine>(tx, query, PAGE_ROWS);
  for await (const page of pages) yield* page;
}

const PAGE_ROWS = 2_000;

interface AppliedLine {
  name: string;
  namespace_id: string;
  project_id: string;
  usage_month: string;
  /** Six decimals, signed. */
  amount: string;
  /** The usage that it is about, or `""`. */
  entry: string;
  /** Sum of all lines about that usage. */
  adjusted: string;
}
