/** The files of a month as an honest service makes them: in memory, by core alone, and by the plainest sums. */
import { createHash } from "node:crypto";
import {
  formatSignedComputeMs,
  parseSignedComputeMs,
  signedComputeMinutes,
} from "../../../src/core/charge.ts";
import type { Body, Entry, EntryOf } from "../../../src/core/entry.ts";
import { type Row, TABLES, type TableName } from "../../../src/core/export/tables.ts";
import { leafHash, sha256 } from "../../../src/core/hash.ts";
import { canonical } from "../../../src/core/json.ts";
import type { Share } from "../../../src/core/month/allocation.ts";
import { allocationLine, packLine } from "../../../src/core/month/lines.ts";
import type { PackRoll } from "../../../src/core/month/roll-forward.ts";
import { Waterfall } from "../../../src/core/month/waterfall.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { grouped, type Line, linesOf, reportOf, sumOf } from "./lines.ts";
import { type Cells, csvOf, rowsOf, sorted } from "./rows.ts";

/** What a namespace's month came to. */
export interface Owed {
  namespace: string;
  shares: readonly Share[];
  rolls: readonly PackRoll[];
  account: Pick<Body<"account">, "account_id" | "subscription_id"> | undefined;
}

export function filesOfMonth(
  entries: readonly Entry[],
  month: string,
  owed: readonly Owed[],
): Record<Exclude<TableName, "entries">, Row[]> {
  const lines = entries
    .flatMap((entry) => linesOf(entry, entries))
    .filter((line) => line.billing_month === month);
  const hosted = lines.filter((line) => line.tracking === "hosted");
  const cells = {
    account_map: entries.flatMap((entry) => (entry.kind === "account" ? [accountOf(entry)] : [])),
    allocation: owed.flatMap(allocationsOf),
    monthly_hosted_runner: grouped(
      hosted,
      ["runner", "namespace", "project", "usage_month"],
      hostedRunner,
    ),
    monthly_namespace: grouped(lines, ["tracking", "namespace", "usage_month"], namespaceMonth),
    monthly_project: grouped(
      lines,
      ["tracking", "namespace", "project", "usage_month"],
      namespaceMonth,
    ),
    pack_rollforward: owed.flatMap((each) => packsOf(each, entries)),
    portal: portalOf(lines, owed),
  };
  const names = Object.keys(cells) as (keyof typeof cells)[];
  const rows = names.map((name) => [name, rowsOf(name, cells[name])]);
  return Object.fromEntries(rows);
}

/** The member `exports` of `month_closed`. */
export function exportsOf(
  files: Readonly<Record<string, readonly Row[]>>,
): Body<"month_closed">["exports"] {
  return Object.entries(files).map(([name, rows]) => {
    const text = csvOf(TABLES[name as TableName], rows);
    const digest = createHash("sha256").update(text).digest("base64");
    return { name, rows: String(rows.length), sha256: digest };
  });
}

/** All entries, a row each, and behind an adjustment one for each of its lines. */
export function entryRowsOf(bytes: readonly Uint8Array[], entries: readonly Entry[]): Row[] {
  const cells = entries.flatMap((entry, at) => {
    const leaf = encodeBase64(leafHash(bytes[at] ?? new Uint8Array(), sha256));
    const head = { index: String(entry.index), kind: entry.kind, at: entry.at, leaf };
    const lines = linesOf(entry, entries);
    if (entry.kind === "adjustment") {
      const told = entry.body.lines.map((said, line) => ({
        ...{ ...head, line: String(line), tracking: "hosted", namespace_id: said.namespace_id },
        ...{ project_id: said.project_id, adjustment_compute_ms: said.amount },
        ...{ usage_month: said.usage_month, billing_month: entry.body.billing_month },
      }));
      return [head, ...told];
    }
    const [built] = lines;
    if (entry.kind !== "usage" || built === undefined) return [head];
    const { job, runner, usage } = reportOf(entry);
    const { billing_month, compute_ms, machine_type, not_billable, tracking, usage_month } =
      entry.body;
    return [
      {
        ...{
          ...head,
          tracking,
          compute_ms,
          machine_type,
          not_billable,
          usage_month,
          billing_month,
        },
        ...{ job_id: job.id, project_id: job.project_id, namespace_id: job.root_namespace_id },
        ...{ runner_id: built.runner, runner_uuid: runner.uuid, finished_at: usage.finished_at },
        duration_ms: usage.duration_ms,
      },
    ];
  });
  return rowsOf("entries", cells);
}

function figures(lines: readonly Line[]): { cells: Cells; net: bigint; seconds: string } {
  const [compute, adjustment] = [sumOf(lines, "compute"), sumOf(lines, "adjustment")];
  const net = compute + adjustment;
  const billable = sumOf(lines, "billable") + adjustment;
  const duration = sumOf(lines, "duration");
  const last = lines.at(-1)?.index;
  return {
    net,
    seconds: String(duration / 1000n),
    cells: {
      ...{ jobs: String(sumOf(lines, "jobs")), duration_ms: String(duration) },
      gross_compute_ms: formatSignedComputeMs(compute),
      adjustment_compute_ms: formatSignedComputeMs(adjustment),
      net_compute_ms: formatSignedComputeMs(net),
      billable_compute_ms: formatSignedComputeMs(billable),
      last_index: String(last),
    },
  };
}

function hostedRunner(lines: readonly [Line, ...Line[]]): Cells {
  const { cells, net, seconds } = figures(lines);
  const [{ billing_month, namespace, project, runner, usage_month }] = lines;
  return {
    ...{ runner_id: runner, runner_duration_seconds: seconds, project_id: project },
    ...{ root_namespace_id: namespace, billing_month, usage_month, ...cells },
    compute_minutes_used: signedComputeMinutes(net, 4),
  };
}

function namespaceMonth(lines: readonly [Line, ...Line[]]): Cells {
  const { cells, net, seconds } = figures(lines);
  const [{ billing_month: date, namespace, project, tracking, usage_month }] = lines;
  return {
    ...{ namespace_id: namespace, project_id: project, date, tracking, usage_month, ...cells },
    ...{ amount_used: signedComputeMinutes(net, 2), shared_runners_duration: seconds },
  };
}

function portalOf(lines: readonly Line[], owed: readonly Owed[]): Cells[] {
  return owed.flatMap(({ account, namespace, shares }) => {
    return shares.flatMap((share) => {
      const own = lines.filter((line) => {
        return line.namespace === namespace && line.usage_month === share.usage_month;
      });
      const by = ["day", "project", "machine", "tracking"] as const;
      const rows = sorted(
        "portal",
        grouped(own, by, (same) => portalLine(same, account)),
      );
      const waterfall = new Waterfall(share);
      return rows.map((row) => {
        const { absorbed, included, overage, pack } = waterfall.deal(
          parseSignedComputeMs(row["billable_compute_ms"] ?? ""),
        );
        return {
          ...row,
          included_compute_ms: formatSignedComputeMs(included),
          pack_compute_ms: formatSignedComputeMs(pack),
          overage_compute_ms: formatSignedComputeMs(overage),
          absorbed_compute_ms: formatSignedComputeMs(absorbed),
        };
      });
    });
  });
}

function portalLine(lines: readonly [Line, ...Line[]], account: Owed["account"]): Cells {
  const [{ day, machine, namespace, project, tracking, usage_month }] = lines;
  const [gross, compute] = [sumOf(lines, "gross"), sumOf(lines, "compute")];
  const adjustment = sumOf(lines, "adjustment");
  const billable = sumOf(lines, "billable") + adjustment;
  const net = compute + adjustment;
  return {
    ...payer(account),
    ...{
      namespace_id: namespace,
      project_id: project,
      machine_type: machine,
      tracking,
      usage_month,
      day,
    },
    ...{ jobs: String(sumOf(lines, "jobs")), duration_ms: String(sumOf(lines, "duration")) },
    gross_compute_ms: formatSignedComputeMs(gross),
    discount_compute_ms: formatSignedComputeMs(gross - compute),
    adjustment_compute_ms: formatSignedComputeMs(adjustment),
    net_compute_ms: formatSignedComputeMs(net),
    billable_compute_ms: formatSignedComputeMs(billable),
    not_billable_compute_ms: formatSignedComputeMs(net - billable),
  };
}

function allocationsOf({ account, namespace, shares }: Owed): Cells[] {
  return shares.map((share) => {
    const { packs, usage_month, ...parts } = allocationLine(namespace, share);
    const { absorbed, included, not_billable, overage, usage } = parts;
    return {
      ...{ ...payer(account), namespace_id: namespace, usage_month, packs: canonical(packs) },
      ...{ usage_compute_ms: usage, included_compute_ms: included, overage_compute_ms: overage },
      ...{ absorbed_compute_ms: absorbed, not_billable_compute_ms: not_billable },
      drawn_compute_ms: formatSignedComputeMs(
        share.packs.reduce((sum, pack) => sum + pack.drawn, 0n),
      ),
    };
  });
}

function packsOf({ namespace, rolls }: Owed, entries: readonly Entry[]): Cells[] {
  return rolls.map((roll) => {
    const { namespace_id, pack, ...said } = packLine(namespace, roll);
    const version = entries[Number(pack)];
    if (version?.kind !== "pack") throw new Error("honest: no pack");
    const { expires_in, pack_id, purchased_in } = version.body;
    const amounts = Object.entries(said).map(([name, amount]) => [`${name}_compute_ms`, amount]);
    return {
      namespace_id,
      pack,
      pack_id,
      purchased_in,
      expires_in,
      ...Object.fromEntries(amounts),
    };
  });
}

function accountOf({ body, index }: EntryOf<"account">): Cells {
  const { account_id, effective_from, namespace_id, source, source_version, subscription_id } =
    body;
  const said = {
    account_id,
    effective_from,
    namespace_id,
    source,
    source_version,
    subscription_id,
  };
  return { ...said, index: String(index) };
}

function payer(account: Owed["account"]): Cells {
  const { account_id = "", subscription_id = "" } = account ?? {};
  return { account_id, subscription_id };
}
