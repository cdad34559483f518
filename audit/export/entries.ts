/** Rows of `entries`: one for each entry, and behind an adjustment one for each of its lines. */
import type { Cell, Row } from "../../src/core/export/tables.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import type { ReadEntry, UsageEntry } from "../archive/block.ts";
import type { Built } from "./rated.ts";

/** How many columns tell what kind of entry it is, where, and when; and what else there is to tell. */
const REST = 14;

export function entryRows(entry: ReadEntry, leaf: Uint8Array, built: Built | undefined): Row[] {
  const { at, index, kind } = entry;
  const head = (line: Cell): Row => [String(index), line, kind, at, encodeBase64(leaf)];
  if (kind === "usage" && built !== undefined)
    return [[...head(null), ...usageCells(entry, built)]];
  const own = [...head(null), ...Array.from({ length: REST }, () => null)];
  if (kind !== "adjustment") return [own];
  const { billing_month, lines } = entry.body;
  const rows = lines.map(({ amount, namespace_id, project_id, usage_month }, line) => [
    ...head(String(line)),
    ...["hosted", null, project_id || null, namespace_id, null, null, null, null, null, null],
    ...[amount, null, usage_month, billing_month],
  ]);
  return [own, ...rows];
}

function usageCells({ body }: UsageEntry, { report, runner: line }: Built): Cell[] {
  const { job, runner, usage } = report;
  return [
    ...[body.tracking, job.id, job.project_id, job.root_namespace_id],
    ...[line?.runner_id ?? null, runner.uuid],
    ...[body.machine_type, usage.finished_at, usage.duration_ms, body.compute_ms, null],
    ...[body.not_billable || null, body.usage_month, body.billing_month],
  ];
}
