/** Append alone against what platforms do: a row and a counter for each build, in one transaction. */
import { join } from "node:path";
import type { SignedReport } from "../src/flow/report/verify.ts";
import { connect, type Sql } from "../src/store/connect.ts";
import type { Context } from "./history.ts";
import { openLedger } from "./ledger.ts";
import { alternate, type Row, rate } from "./measure.ts";

/** Every commit waits a millisecond before it flushes: a slow disk, the same for both sides. */
const SLOW_FLUSH = { commit_delay: "1000", commit_siblings: "0" };
const CLIENTS = 8;
const NAMESPACES = 1;

export async function append({ folder, sizes, say, defer }: Context): Promise<Row> {
  const ledger = await openLedger(join(folder, "append"), SLOW_FLUSH);
  defer(ledger.close);
  const counters = await openCounters(ledger.urls.owner);
  defer(() => counters.end());
  const { appended, counted, rounds } = sizes;
  const figures = await alternate({
    a: async () => {
      const verdicts = ledger.fleet.verdicts(appended, NAMESPACES);
      return await rate(appended, () => ledger.append(verdicts));
    },
    b: async () => {
      const verdicts = ledger.fleet.verdicts(counted, NAMESPACES);
      return await rate(counted, () => countAll(counters, verdicts));
    },
    rounds,
    say,
  });
  return {
    row: "append alone, 1 ms flush",
    against: `row + counter, one transaction each, ${CLIENTS} clients`,
    bound: { kind: "at-least", ratio: 20 },
    unit: "reports/s",
    ...figures,
    notes: { reports: `batches of 100, 10 in flight`, namespaces: String(NAMESPACES) },
  };
}

async function openCounters(url: string): Promise<Sql> {
  const sql = connect(url, { max: CLIENTS, name: "bench-counters" });
  await sql`
    create table builds (
      job_id bigint primary key,
      project_id bigint not null,
      namespace_id bigint not null,
      runner_uuid text not null,
      duration_ms bigint not null,
      finished_at timestamptz(3) not null,
      report text not null
    )`;
  await sql`create table counters (namespace_id bigint primary key, n numeric not null)`;
  await sql`insert into counters select 1000 + i, 0 from generate_series(0, ${NAMESPACES - 1}) as i`;
  return sql;
}

async function countAll(sql: Sql, verdicts: readonly SignedReport[]): Promise<void> {
  let next = 0;
  const client = async (): Promise<void> => {
    for (let i = next++; i < verdicts.length; i = next++) await count(sql, verdicts[i]);
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
}

/** Both statements in one packet, the update last: the counter's lock is held as briefly as can be. */
async function count(sql: Sql, verdict: SignedReport | undefined): Promise<void> {
  if (verdict === undefined) return;
  const { jws, report } = verdict;
  const { job, runner, usage } = report;
  await sql.begin((tx) => [
    tx`
      insert into builds (
        job_id, project_id, namespace_id, runner_uuid, duration_ms, finished_at, report
      )
      values (
        ${job.id}, ${job.project_id}, ${job.root_namespace_id}, ${runner.uuid},
        ${usage.duration_ms}, ${usage.finished_at}, ${jws}
      )`,
    tx`
      update counters
      set n = n + ${usage.duration_ms}
      where namespace_id = ${job.root_namespace_id}`,
  ]);
}
