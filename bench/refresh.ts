/** The cost of a refresh follows what is new, not what is old. */
import { systemClock } from "../src/flow/clock.ts";
import { refresh as refreshNow } from "../src/flow/usage/fold.ts";
import { connect, type Sql } from "../src/store/connect.ts";
import { type Context, HISTORY_NAMESPACES } from "./history.ts";
import { fill, type Ledger } from "./ledger.ts";
import { alternate, type Row, seconds } from "./measure.ts";

export async function refresh(context: Context): Promise<Row> {
  const { histories, sizes, say } = context;
  const { large, small, refreshed, rounds } = sizes;
  const a = await timer(await histories(large), context);
  const b = await timer(await histories(small), context);
  const figures = await alternate({ a, b, rounds, say });
  return {
    row: `refresh after ${refreshed} new entries, log of ${large}`,
    against: `same, log of ${small}`,
    bound: { kind: "at-most", ratio: 1.5 },
    unit: "s",
    ...figures,
    notes: { namespaces: String(HISTORY_NAMESPACES) },
  };
}

/** Each round folds the same entries into the same buckets: what the one before did is undone. */
async function timer(
  ledger: Ledger,
  { sizes, say, defer }: Context,
): Promise<() => Promise<number>> {
  const owner = connect(ledger.urls.owner, { max: 1, name: "bench" });
  defer(() => owner.end());
  await fill(ledger, sizes.refreshed, HISTORY_NAMESPACES, say);
  await ledger.seal();
  await owner`create table buckets_before as select * from usage_buckets`;
  await owner`create table watermarks_before as select * from watermarks`;
  return async () => {
    const took = await seconds(async () => {
      const outcome = await refreshNow({ sql: ledger.sql, clock: systemClock });
      const folded = outcome === "skipped" ? 0n : outcome.entries;
      if (folded !== BigInt(sizes.refreshed)) throw new Error(`bench: ${folded} entries folded`);
    });
    await undo(owner);
    return took;
  };
}

async function undo(owner: Sql): Promise<void> {
  await owner.begin(async (tx) => {
    await tx`truncate usage_buckets, watermarks`;
    await tx`insert into usage_buckets select * from buckets_before`;
    await tx`insert into watermarks select * from watermarks_before`;
    await tx`refresh materialized view open_namespace_monthly_usages`;
    await tx`refresh materialized view open_project_monthly_usages`;
    await tx`refresh materialized view open_gitlab_hosted_runner_monthly_usages`;
  });
  await owner`vacuum analyze`;
}
