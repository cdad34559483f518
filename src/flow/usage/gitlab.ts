/**
 * Usage in the shapes of GitLab's own GraphQL fields, so that its pages can be fed from what is billed (docs/tie-out.md).
 * Names of fields and types of values are GitLab's, JSON numbers too; the figures are those of `usage`.
 */
import { parseSignedComputeMs, signedComputeMinutes } from "../../core/charge.ts";
import { instantText, nextMonth } from "../../core/unit.ts";
import type { Sql } from "../../store/connect.ts";
import { type NamedId, readNames } from "../../store/names.ts";
import type { Clock } from "../clock.ts";
import { type UsageAnswer, type UsageQuery, type UsageRow, usage } from "./usage.ts";

interface Reading {
  /** As reader. */
  sql: Sql;
  clock: Clock;
}

/** GraphQL's own place for what no field says: as of what the figures are. */
export type Extensions = Pick<UsageAnswer, "log" | "as_of" | "sealed" | "refreshed_at" | "age_ms">;

export interface ProjectMinutes {
  name: string | null;
  minutes: number;
  sharedRunnersDuration: number;
  /** Null: corrections of the namespace's month. */
  project: { id: string; name: string | null } | null;
}

export interface NamespaceMinutes {
  /** As `July`. */
  month: string;
  monthIso8601: string;
  minutes: number;
  sharedRunnersDuration: number;
  projects: { nodes: ProjectMinutes[] };
}

export interface CiMinutesUsage {
  data: { ciMinutesUsage: { nodes: NamespaceMinutes[] } };
  extensions: Extensions;
}

type Seen = Pick<UsageQuery, "log" | "viewer" | "visible">;

/**
 * Of one root namespace on hosted runners, newest billing month first.
 *
 * @param month the only billing month that is asked for
 * @throws Problem `not-found`, `too-many`
 */
export async function ciMinutesUsage(
  reading: Reading,
  { month, ...asked }: Seen & { namespace: bigint; month: string | undefined },
): Promise<CiMinutesUsage> {
  const range = month === undefined ? {} : monthRange(month);
  const used = await usage(reading, { ...asked, ...range, group: ["project"], tracking: "hosted" });
  const ids = used.rows.map((row): NamedId => ({ kind: "project", id: row.project ?? "" }));
  const names = await namesOf(reading, asked.log, ids);
  const months = [...new Set(used.rows.map((row) => row.billing_month))].sort().reverse();
  const nodes = months.map((each): NamespaceMinutes => {
    const rows = used.rows.filter((row) => row.billing_month === each);
    return {
      month: nameOfMonth(each),
      monthIso8601: each,
      ...minutesOf(rows),
      projects: { nodes: rows.map((row) => projectOf(row, names)) },
    };
  });
  return { data: { ciMinutesUsage: { nodes } }, extensions: extensionsOf(used) };
}

function projectOf(row: UsageRow, names: ReadonlyMap<string, string>): ProjectMinutes {
  const { project = "" } = row;
  const name = names.get(project) ?? null;
  const known = project !== NO_PROJECT;
  return {
    name,
    ...minutesOf([row]),
    project: known ? { id: `gid://gitlab/Project/${project}`, name } : null,
  };
}

/** Adjustments of a namespace's month (store/charges.ts). */
const NO_PROJECT = "0";

export const GROUPINGS = ["INSTANCE_AGGREGATE", "PER_ROOT_NAMESPACE"] as const;

export interface HostedRunnerUsage {
  /** As `January 2025`. */
  billingMonth: string;
  billingMonthIso8601: string;
  computeMinutes: number;
  durationSeconds: number;
  computeMinutesUsage: number;
  durationMinutes: number;
  rootNamespace: { __typename: "Namespace"; id: string; name: string | null } | null;
}

export interface CiDedicatedHostedRunnerUsage {
  data: { ciDedicatedHostedRunnerUsage: { nodes: HostedRunnerUsage[] } };
  extensions: Extensions;
}

export interface HostedRunnerQuery extends Seen {
  grouping: (typeof GROUPINGS)[number];
  /** Of both at most one; neither: this year. */
  month: string | undefined;
  year: string | undefined;
  runner: bigint | undefined;
}

/** Newest billing month first. @throws Problem `not-found`, `too-many` */
export async function ciDedicatedHostedRunnerUsage(
  reading: Reading,
  { grouping, month, year, ...asked }: HostedRunnerQuery,
): Promise<CiDedicatedHostedRunnerUsage> {
  const isPer = grouping === "PER_ROOT_NAMESPACE";
  const group = isPer ? (["namespace"] as const) : [];
  const range = month === undefined ? yearOf(year, reading.clock) : monthRange(month);
  const used = await usage(reading, { ...asked, ...range, group, tracking: "hosted" });
  const ids = used.rows.map((row): NamedId => ({ kind: "namespace", id: row.namespace ?? "" }));
  const names = await namesOf(reading, asked.log, isPer ? ids : []);
  const newest = used.rows.toSorted(({ billing_month: a }, { billing_month: b }) => {
    return Number(a < b) - Number(a > b);
  });
  const nodes = newest.map((row) => hostedOf(row, names));
  return { data: { ciDedicatedHostedRunnerUsage: { nodes } }, extensions: extensionsOf(used) };
}

function hostedOf(row: UsageRow, names: ReadonlyMap<string, string>): HostedRunnerUsage {
  const { billing_month, compute_minutes, namespace } = row;
  const { sharedRunnersDuration: durationSeconds } = minutesOf([row]);
  const id = `gid://gitlab/Namespace/${namespace}`;
  const name = names.get(namespace ?? "") ?? null;
  return {
    billingMonth: `${nameOfMonth(billing_month)} ${billing_month.slice(0, "YYYY".length)}`,
    billingMonthIso8601: billing_month,
    computeMinutes: wholeOf(compute_minutes),
    durationSeconds,
    // Decimals of so few digits are the same as JSON numbers.
    computeMinutesUsage: Number(compute_minutes),
    durationMinutes: Number(signedComputeMinutes(BigInt(durationSeconds) * SECOND)),
    rootNamespace: namespace === undefined ? null : { __typename: "Namespace", id, name },
  };
}

/** In units of 10⁻⁶ ms. */
const SECOND = 1_000_000_000n;
const MS_PER_SECOND = 1_000n;

/** `amount_used` of the exact sum, of which GraphQL's Int takes the whole part, and seconds of the sum of milliseconds. */
function minutesOf(rows: readonly UsageRow[]): { minutes: number; sharedRunnersDuration: number } {
  const net = rows.reduce((sum, row) => sum + parseSignedComputeMs(row.compute_ms), 0n);
  const duration = rows.reduce((sum, row) => sum + BigInt(row.duration_ms), 0n);
  return {
    minutes: wholeOf(signedComputeMinutes(net, 2)),
    sharedRunnersDuration: Number(duration / MS_PER_SECOND),
  };
}

/** Towards zero, as Ruby's `to_i`; never −0. */
function wholeOf(decimal: string): number {
  return Number(BigInt(decimal.split(".")[0] ?? ""));
}

function monthRange(month: string): { from: string; to: string } {
  return { from: month, to: nextMonth(month) };
}

function yearOf(year: string | undefined, clock: Clock): { from: string; to: string } {
  const of = year ?? instantText(clock.now()).slice(0, "YYYY".length);
  return { from: `${of}-01-01`, to: nextMonth(`${of}-12-01`) };
}

async function namesOf(
  { sql }: Reading,
  log: string,
  ids: readonly NamedId[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await readNames(sql, log, ids);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

function extensionsOf({ age_ms, as_of, log, refreshed_at, sealed }: UsageAnswer): Extensions {
  return {
    ...{ log, as_of, sealed },
    ...(refreshed_at !== undefined && { refreshed_at }),
    ...(age_ms !== undefined && { age_ms }),
  };
}

const MONTHS = [
  ...["January", "February", "March", "April", "May", "June", "July", "August", "September"],
  ...["October", "November", "December"],
];

function nameOfMonth(month: string): string {
  return MONTHS[Number(month.slice("YYYY-".length, "YYYY-MM".length)) - 1] ?? "";
}
