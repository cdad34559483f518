/** One build's charge in full arithmetic, with the signed report and the entry that it rests on. */
import {
  computeMinutes,
  formatSignedComputeMs,
  parseComputeMs,
  parseSignedComputeMs,
} from "../../core/charge.ts";
import type { Body } from "../../core/entry.ts";
import { projectFactor, runnerFactor } from "../../core/factor.ts";
import { Problem } from "../../core/problem.ts";
import { clockAnomaly } from "../../core/report.ts";
import { encodeBase64 } from "../../core/text.ts";
import { Tracking } from "../../core/unit.ts";
import { readUsageAdjustments } from "../../store/adjustments.ts";
import type { Transaction } from "../../store/connect.ts";
import { readEntry } from "../../store/entries.ts";
import { readJobs } from "../../store/jobs.ts";
import { listLogs } from "../../store/logs.ts";
import { asViewer, type Viewer } from "../../store/viewer.ts";
import { type Proofs, proveEntries } from "../log/prove.ts";
import {
  type AsOf,
  asOf,
  decodedAs,
  reportOf,
  type Showing,
  type ShownReport,
  snapshot,
} from "./show.ts";

export interface Explanation extends AsOf {
  /** One for each tracking in which the job was reported; at least one. */
  usages: ExplainedUsage[];
}

export interface ExplainedUsage extends ShownReport {
  index: string;
  at: string;
  leaf: string;
  /** The entry's bytes, base64: what was hashed. */
  entry: string;
  /** C2SP tlog-proof that holds the entry too; absent until the published checkpoint covers it. */
  proof?: string;
  tracking: Tracking;
  usage_month: string;
  billing_month: string;
  /** Wall-clock span and measured duration differ by more than the tolerance. */
  clock_anomaly: boolean;
  rating: Rating;
  /** In the order of the log. */
  adjustments: BuildAdjustment[];
  /** What the build costs: `compute_ms` of its rating, and all adjustments. */
  net_compute_ms: string;
}

/** What was added to the charge of a build: below zero for a credit. */
export interface BuildAdjustment {
  index: string;
  line: string;
  compute_ms: string;
  billing_month: string;
}

export interface Rating {
  duration_ms: string;
  machine_type: string;
  class: string;
  /** The card's entry and the factors that it has for machine type and class, as people wrote them. */
  card: { index: string; runner_factor: string; project_factor?: string };
  /** Of the namespace, where its minutes decided the class's factor. */
  limit?: { index: string; monthly_minutes: string };
  billable: boolean;
  not_billable: string;
  /** The lower of the two, reduced, or 0/1 for a reason that is not billable. */
  factor: string;
  /** duration × factor, half even to six decimals. */
  compute_ms: string;
  compute_minutes: string;
  /** The same as one line for people. */
  arithmetic: string;
}

/**
 * @param proofs what the entries are proven by
 * @param search.visible namespaces that may be seen; absent: all of the log
 * @param search.viewer of whoever is a viewer and nothing else: the database shows them no more either
 * @throws Problem `not-found`, also for a job of a namespace that may not be seen;
 *   `archive-unavailable`; Error when an entry is not the one that was sealed
 */
export async function explain(
  { sql }: Showing,
  proofs: Proofs,
  search: {
    log: string;
    job: string;
    tracking?: Tracking | undefined;
    visible?: readonly bigint[] | undefined;
    viewer?: Viewer | undefined;
  },
): Promise<Explanation> {
  const { log, job: jobId, viewer, visible } = search;
  const trackings = search.tracking === undefined ? Tracking.options : [search.tracking];
  const found = await snapshot(sql, async (tx) => {
    if (viewer !== undefined) await asViewer(tx, viewer);
    const [listed] = await listLogs(tx, log);
    if (listed === undefined) throw new Problem("not-found");
    const jobs = await readJobs(
      tx,
      log,
      trackings.map((tracking) => ({ tracking, jobId })),
    );
    const inOrder = jobs.toSorted((a, b) => (a.tracking < b.tracking ? -1 : 1));
    const usages = await Promise.all(inOrder.map(({ index }) => explained(tx, log, index)));
    const seen = usages.filter(({ report }) => {
      return visible === undefined || visible.includes(BigInt(report.job.root_namespace_id));
    });
    if (seen.length === 0) throw new Problem("not-found");
    return { ...asOf(listed), usages: seen };
  });
  return { ...found, usages: await proven(proofs, log, found.usages) };
}

type Stored = ExplainedUsage & { bytes: Uint8Array };

/** After the snapshot: no transaction waits for an archive. */
async function proven(
  proofs: Proofs,
  log: string,
  usages: readonly Stored[],
): Promise<ExplainedUsage[]> {
  const entries = usages.map(({ index, bytes }) => ({ index: BigInt(index), bytes }));
  const texts = await proveEntries(proofs, log, entries);
  return usages.map(({ bytes: _, ...usage }) => {
    const proof = texts.get(BigInt(usage.index));
    return proof === undefined ? usage : { ...usage, proof };
  });
}

async function explained(tx: Transaction, log: string, index: bigint): Promise<Stored> {
  const { at, bytes, leaf } = await readEntry(tx, log, index);
  const { body } = decodedAs("usage", bytes);
  const shown = reportOf(body.jws);
  const adjustments = await readUsageAdjustments(tx, log, index);
  const net = adjustments.reduce(
    (sum, { amount }) => sum + parseSignedComputeMs(amount),
    parseSignedComputeMs(body.compute_ms),
  );
  return {
    index: String(index),
    at,
    leaf: encodeBase64(leaf),
    entry: encodeBase64(bytes),
    bytes,
    tracking: body.tracking,
    usage_month: body.usage_month,
    billing_month: body.billing_month,
    clock_anomaly: clockAnomaly(shown.report.usage),
    rating: await ratingOf(tx, log, body, shown.report.usage.duration_ms),
    adjustments: adjustments.map(({ index, line, amount, billing_month }) => {
      return { index: String(index), line: String(line), compute_ms: amount, billing_month };
    }),
    net_compute_ms: formatSignedComputeMs(net),
    ...shown,
  };
}

async function ratingOf(
  tx: Transaction,
  log: string,
  body: Body<"usage">,
  duration_ms: string,
): Promise<Rating> {
  const { machine_type, billable, not_billable, factor, compute_ms } = body;
  const card = decodedAs("rate_card", (await readEntry(tx, log, BigInt(body.card))).bytes).body;
  const project_factor = projectFactor(card, body.class);
  const limit = body.limit === "" ? undefined : await limitAt(tx, log, body.limit);
  const compute_minutes = computeMinutes(parseComputeMs(compute_ms), 4);
  return {
    duration_ms,
    machine_type,
    class: body.class,
    card: {
      index: body.card,
      runner_factor: runnerFactor(card, machine_type) ?? "",
      ...(project_factor !== undefined && { project_factor }),
    },
    ...(limit && { limit }),
    billable,
    not_billable,
    factor,
    compute_ms,
    compute_minutes,
    arithmetic: `${duration_ms} ms × ${factor} = ${compute_ms} compute-ms = ${compute_minutes} compute minutes`,
  };
}

async function limitAt(tx: Transaction, log: string, index: string): Promise<Rating["limit"]> {
  const { bytes } = await readEntry(tx, log, BigInt(index));
  return { index, monthly_minutes: decodedAs("quota", bytes).body.monthly_minutes };
}
