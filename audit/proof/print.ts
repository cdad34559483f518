/** The outcome of a proof's check, for people and as JSON. */
import { encodeBase64 } from "../../src/core/text.ts";
import { FINDINGS, OPEN } from "../finding.ts";
import { instant, printable } from "../print.ts";
import type { Build } from "./build.ts";
import type { Checked } from "./check.ts";

/** 0 proven, 1 a finding, 2 of a later version's kind. */
export function exitOfChecked({ findings, open }: Checked): 0 | 1 | 2 {
  if (findings.count > 0) return 1;
  return open.count > 0 ? 2 : 0;
}

const VERDICT = [
  "PROVEN: the entry is in the log",
  "FOUND: this proves nothing, or not what it is shown for",
  "OPEN: a later version's entry",
] as const;

export function printChecked(checked: Checked): string {
  const { build, findings, limits, open, proven, witnessed } = checked;
  const lines = [
    VERDICT[exitOfChecked(checked)],
    ...(proven === undefined ? [] : placed(proven)),
    ...(witnessed?.by ?? []).map(({ name, time }) => `  cosigned by ${name} at ${instant(time)}`),
    ...(build === undefined ? [] : built(build)),
    ...limits.map((limit) => `  ${limit}`),
    ...findings.listed.map(({ code, detail }) => `  ${code}: ${detail} (${FINDINGS[code]})`),
    ...open.listed.map(({ code, detail }) => `  ${code}: ${detail} (${OPEN[code]})`),
  ];
  return `${printable(lines.join("\n"))}\n`;
}

export function checkedJson(checked: Checked): object {
  const { build, findings, limits, open, proven, witnessed } = checked;
  return {
    exit: exitOfChecked(checked),
    ...(proven && {
      log: proven.log,
      index: String(proven.index),
      kind: proven.kind,
      origin: proven.checkpoint.origin,
      size: String(proven.checkpoint.size),
      root: encodeBase64(proven.checkpoint.root),
      checkpoint: proven.checkpoint.note,
    }),
    ...(witnessed && {
      witnessed: witnessed.by.map(({ name, time }) => ({ name, time: String(time) })),
    }),
    ...(build && { build }),
    limits,
    findings: findings.listed.map(({ code, detail }) => ({ code, detail })),
    open: open.listed.map(({ code, detail }) => ({ code, detail })),
  };
}

function placed({ checkpoint, index, kind, log }: NonNullable<Checked["proven"]>): string[] {
  const { origin, root, size } = checkpoint;
  return [
    `  log ${log}: entry ${index}, ${kind}`,
    `  under checkpoint ${size} of ${origin}, root ${encodeBase64(root)}`,
  ];
}

function built({ charge, ...build }: Build): string[] {
  const { duration_ms, finished_at, job, kid, namespace, project, runner } = build;
  return [
    `  job ${job} of project ${project}, namespace ${namespace}`,
    `  on runner ${runner}, reported by key ${kid}`,
    `  ${duration_ms} ms, finished at ${finished_at}`,
    ...(charge === undefined
      ? ["  not charged: the report is held, or in conflict with the one that stands"]
      : charged(duration_ms, charge)),
  ];
}

function charged(duration_ms: string, charge: NonNullable<Build["charge"]>): string[] {
  const { billable, billing_month, compute_minutes, compute_ms, factor, tracking } = charge;
  return [
    `  ${duration_ms} ms × ${factor} = ${compute_ms} compute-ms = ${compute_minutes} compute minutes`,
    `  ${billable ? "billable" : "not billable"}, ${tracking}, posted to ${billing_month.slice(0, 7)}`,
  ];
}
