/** Table `credit_previews`: credit runs that were looked at, and may be asked for (migrations/0013). */
import type { Sql, Transaction } from "./connect.ts";

export interface CreditPreview {
  log: string;
  id: string;
  /** What the entry says of the run: canonical selection, count, digest and sum of its lines. */
  form: string;
  selection: string;
  /** Index of the run that it takes back. */
  reverses: bigint | null;
  lines: bigint;
  lines_sha256: string;
  /** Six decimals, signed. */
  total: string;
  /** Canonical JSON. */
  summary: string;
}

type Reader = Sql | Transaction;

export async function insertCreditPreview(
  tx: Transaction,
  preview: CreditPreview,
  madeAt: string,
): Promise<void> {
  await tx`insert into credit_previews ${tx({ ...preview, made_at: madeAt })}`;
}

const COLUMNS = [
  ...["log", "id", "form", "selection", "reverses", "lines", "lines_sha256", "total", "summary"],
];

export async function readCreditPreview(
  sql: Reader,
  log: string,
  id: string,
): Promise<CreditPreview | undefined> {
  const [preview] = await sql<CreditPreview[]>`
    select ${sql(COLUMNS)}
    from credit_previews
    where log = ${log} and id = ${id}`;
  return preview;
}

/** One that says just this. */
export async function findCreditPreview(
  sql: Reader,
  log: string,
  { form, lines_sha256, selection }: Pick<CreditPreview, "form" | "lines_sha256" | "selection">,
): Promise<CreditPreview | undefined> {
  const [preview] = await sql<CreditPreview[]>`
    select ${sql(COLUMNS)}
    from credit_previews
    where log = ${log} and lines_sha256 = ${lines_sha256} and form = ${form}
      and selection = ${selection}
    limit 1`;
  return preview;
}

/** Previews from before an instant, with their lines. */
export async function deleteCreditPreviews(tx: Transaction, before: string): Promise<void> {
  await tx`
    with old as (
      delete from credit_previews
      where made_at < ${before}
      returning log, id
    )
    delete from credit_lines as line
    using old
    where line.log = old.log and line.preview = old.id`;
}
