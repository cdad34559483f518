/** What each entry adds to a month's files, told from all entries in memory. */
import { charge, parseComputeMs, parseSignedComputeMs } from "../../../src/core/charge.ts";
import type { Entry, EntryOf } from "../../../src/core/entry.ts";
import { parseFactor, runnerFactor } from "../../../src/core/factor.ts";
import { parseCanonical } from "../../../src/core/json.ts";
import { readCompact } from "../../../src/core/jws.ts";
import { Report } from "../../../src/core/report.ts";
import { milliseconds } from "../../../src/core/unit.ts";

export interface Line {
  index: bigint;
  billing_month: string;
  usage_month: string;
  day: string | null;
  tracking: string;
  namespace: string;
  project: string;
  runner: string;
  machine: string;
  jobs: bigint;
  duration: bigint;
  gross: bigint;
  compute: bigint;
  billable: bigint;
  adjustment: bigint;
}

export function linesOf(entry: Entry, entries: readonly Entry[]): Line[] {
  if (entry.kind === "usage") return [lineOf(entry, entries)];
  if (entry.kind !== "adjustment") return [];
  const { billing_month } = entry.body;
  return entry.body.lines.map((said) => {
    const named = entries[Number(said.entry)];
    const usage = said.entry !== "" && named?.kind === "usage" ? lineOf(named, entries) : undefined;
    const nothing = { jobs: 0n, duration: 0n, gross: 0n, compute: 0n, billable: 0n };
    return {
      ...{ index: entry.index, billing_month, usage_month: said.usage_month, tracking: "hosted" },
      ...{ namespace: said.namespace_id, project: said.project_id || "0", ...nothing },
      ...{ runner: usage?.runner ?? "0", machine: usage?.machine ?? "", day: usage?.day ?? null },
      adjustment: parseSignedComputeMs(said.amount),
    };
  });
}

function lineOf(entry: EntryOf<"usage">, entries: readonly Entry[]): Line {
  const { body, index } = entry;
  const { job, runner, usage } = reportOf(entry);
  const card = entries[Number(body.card)];
  if (card?.kind !== "rate_card") throw new Error("honest: no card");
  const factor = parseFactor(runnerFactor(card.body, body.machine_type) ?? "");
  if (factor === undefined) throw new Error("honest: no factor");
  const compute = parseComputeMs(body.compute_ms);
  const enrolled = entries
    .flatMap((each) => (each.kind === "enrolment" ? each.body.runners : []))
    .findLast((line) => line.uuid === runner.uuid && line.effective_from <= usage.finished_at);
  return {
    ...{ index, billing_month: body.billing_month, usage_month: body.usage_month },
    ...{ day: usage.finished_at.slice(0, 10), tracking: body.tracking, machine: body.machine_type },
    ...{
      namespace: job.root_namespace_id,
      project: job.project_id,
      runner: enrolled?.runner_id ?? "",
    },
    ...{ jobs: 1n, duration: BigInt(usage.duration_ms), adjustment: 0n, compute },
    gross: charge(milliseconds(BigInt(usage.duration_ms)), factor),
    billable: body.billable ? compute : 0n,
  };
}

export function reportOf({ body }: EntryOf<"usage">): Report {
  return Report.parse(parseCanonical(readCompact(body.jws)?.payload ?? new Uint8Array()));
}

export function grouped<T>(
  lines: readonly Line[],
  by: readonly (keyof Line)[],
  write: (lines: readonly [Line, ...Line[]]) => T,
): T[] {
  const groups = new Map<string, [Line, ...Line[]]>();
  for (const line of lines) {
    const key = JSON.stringify(by.map((name) => String(line[name])));
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [line]);
    else group.push(line);
  }
  return [...groups.values()].map(write);
}

type Summed = "adjustment" | "billable" | "compute" | "duration" | "gross" | "jobs";
export const sumOf = (lines: readonly Line[], name: Summed): bigint =>
  lines.reduce((sum, line) => sum + line[name], 0n);
