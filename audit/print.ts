/** The outcome for people, and as JSON for machines. */
import { formatVkey } from "../src/core/note.ts";
import { encodeBase64 } from "../src/core/text.ts";
import type { RangeResult } from "./fetch/range.ts";
import {
  FINDINGS,
  type Finding,
  type FindingCode,
  type Findings,
  OPEN,
  type OpenCode,
} from "./finding.ts";
import type { KeyAccount } from "./tally/counters.ts";
import type { Month } from "./tally/months.ts";
import { writeMicro } from "./tally/record.ts";
import type { AuditResult } from "./verify.ts";

/** 0 all proven, 1 a finding, 2 something could not be judged. A finding outweighs what is open. */
export function exitOf({ findings, open }: Pick<AuditResult, "findings" | "open">): 0 | 1 | 2 {
  if (findings.count > 0) return 1;
  return open.count > 0 ? 2 : 0;
}

const VERDICT = ["PROVEN", "FOUND", "OPEN"] as const;
const KEYS_SHOWN_MAX = 10;
const MICRO = 1_000_000n;
/** The last second that a date can say. */
const DATE_SECONDS_MAX = 8_640_000_000_000n;

export function printResult(result: AuditResult): string {
  const { findings, open } = result;
  const lines = [
    `log ${result.log}`,
    ...covered(result),
    ...result.months.map(month),
    ...keys(result.keys),
    ...approvals(result),
    ...verdict(result),
    ...findings.listed.map((finding) => item(finding, FINDINGS[finding.code])),
    ...more(findings.count - findings.listed.length),
    ...open.listed.map((finding) => item(finding, OPEN[finding.code])),
    ...more(open.count - open.listed.length),
  ];
  return `${printable(lines.join("\n"))}\n`;
}

export function resultJson(result: AuditResult): object {
  const { findings, open, root, witnessed } = result;
  return {
    log: result.log,
    exit: exitOf(result),
    ...(result.missed !== undefined && { could_not_look: result.missed }),
    origin: result.origin,
    size: String(result.size),
    root: root === undefined ? "" : encodeBase64(root),
    checkpoint: result.note,
    checkpoints: result.checkpoints,
    learned: result.learned.map(({ name, publicKey }) => formatVkey(name, publicKey)),
    ...(witnessed && {
      witnessed: {
        size: String(witnessed.size),
        by: witnessed.by.map(({ name, time }) => ({ name, time: String(time) })),
      },
    }),
    limits: result.limits,
    uncovered: String(result.uncovered),
    strangers: result.strangers,
    entries: Object.fromEntries(Array.from(result.kinds, ([kind, n]) => [kind, String(n)])),
    signatures: String(result.signatures),
    months: result.months.map((month) => ({
      billing_month: month.billing_month,
      tracking: month.tracking,
      jobs: String(month.jobs),
      duration_ms: String(month.duration),
      compute_ms: decimal(month.compute),
      billable_compute_ms: decimal(month.billable),
      adjustment_compute_ms: writeMicro(month.adjustment),
    })),
    issuer_keys: result.issuerKeys.map((key) => ({ ...key, approvals: String(key.approvals) })),
    decisions: {
      count: result.decisions.count,
      listed: result.decisions.listed.map((one) => ({ ...one, index: String(one.index) })),
    },
    keys: result.keys.map((key) => ({
      kid: key.kid,
      seen: String(key.seen),
      ...(key.attested !== undefined && { attested: String(key.attested) }),
      missing: String(key.missing),
      malformed: String(key.malformed),
      rejected: String(key.rejected),
    })),
    findings: findingsJson(findings),
    open: { count: open.count, listed: open.listed.map(findingJson) },
  };
}

export function printRange(result: RangeResult): string {
  const { checkpoint, findings, first, last, log, open } = result;
  const place = checkpoint === undefined ? "" : ` under checkpoint ${checkpoint.size}`;
  const proven = `PROVEN: entries ${first} to ${last} are in the log${place}; what they say was not judged`;
  const word = VERDICT[exitOf(result)];
  const lines = [
    `log ${log}`,
    ...result.limits.map((limit) => `  ${limit}`),
    word === "PROVEN"
      ? proven
      : `${word}: ${findings.count} findings; ${open.count} could not be judged`,
    ...findings.listed.map((finding) => item(finding, FINDINGS[finding.code])),
    ...more(findings.count - findings.listed.length),
    ...open.listed.map((finding) => item(finding, OPEN[finding.code])),
    ...more(open.count - open.listed.length),
  ];
  return `${printable(lines.join("\n"))}\n`;
}

export function rangeJson(result: RangeResult): object {
  const { checkpoint, findings, first, last, limits, log, open } = result;
  return {
    log,
    exit: exitOf(result),
    range: { first: String(first), last: String(last) },
    checkpoint: checkpoint?.note ?? "",
    limits,
    findings: findingsJson(findings),
    open: { count: open.count, listed: open.listed.map(findingJson) },
  };
}

function covered(result: AuditResult): string[] {
  if (result.root === undefined) return [`  not looked at to the end: ${result.missed}`];
  const kinds = Array.from(result.kinds, ([kind, n]) => `${n} ${kind}`).join(", ");
  const lines = [
    ...result.learned.map(
      ({ name, publicKey }) => `  the log has named a key: ${formatVkey(name, publicKey)}`,
    ),
    `  checkpoint ${result.size} of ${result.origin}, root ${encodeBase64(result.root)}`,
    `  ${result.checkpoints} checkpoints compared, ${result.signatures} statements verified`,
    `  entries: ${kinds}`,
    ...witnesses(result),
    ...result.limits.map((limit) => `  ${limit}`),
  ];
  lines.push(`  keep checkpoint/${result.size}: without it nobody can tell when the log is cut`);
  if (result.uncovered > 0n) {
    lines.push(`  not covered: ${result.uncovered} entries past the checkpoint`);
  }
  const { count, listed } = result.strangers;
  if (count > 0) lines.push(`  not looked at: ${count} files that no log writes, as ${listed[0]}`);
  return lines;
}

/** The time is the witness's own, and the one that nobody who runs the log can choose. */
function witnesses({ witnessed }: AuditResult): string[] {
  return (witnessed?.by ?? []).map(
    ({ name, time }) => `  checkpoint ${witnessed?.size} cosigned by ${name} at ${instant(time)}`,
  );
}

/** Seconds since the epoch as a date, if it is of a year that dates have. */
export function instant(seconds: bigint): string {
  if (seconds > DATE_SECONDS_MAX) return `${seconds} s`;
  return new Date(Number(seconds) * 1000).toISOString();
}

function month({ adjustment, billable, billing_month, compute, jobs, tracking }: Month): string {
  const adjusted = adjustment === 0n ? "" : `, ${writeMicro(adjustment)} by adjustments`;
  const amounts = `${decimal(compute)} compute-ms, ${decimal(billable)} billable${adjusted}`;
  return `  ${billing_month.slice(0, 7)} ${tracking}: ${jobs} jobs, ${amounts}`;
}

/** Gaps are information: the report may be on its way, and the agent keeps it until it is proven. */
function keys(accounts: readonly KeyAccount[]): string[] {
  const gaps = accounts.filter(({ missing }) => missing > 0n);
  const silent = accounts.filter(({ attested }) => attested === undefined).length;
  return [
    `  keys: ${accounts.length} have spoken, ${silent} never attested, ${gaps.length} with gaps`,
    ...gaps
      .slice(0, KEYS_SHOWN_MAX)
      .map(({ kid, attested, missing }) => `    ${kid}: ${missing} of ${attested} not on the log`),
    ...more(gaps.length - KEYS_SHOWN_MAX),
  ];
}

/** Whoever knows the issuers compares: a made-up issuer's key looks like any other. */
function approvals({ decisions, issuerKeys }: AuditResult): string[] {
  if (issuerKeys.length === 0) return [];
  return [
    `  decisions by two persons: ${decisions.count}`,
    ...issuerKeys
      .slice(0, KEYS_SHOWN_MAX)
      .map((key) => `    ${key.approvals} approvals by key ${key.thumbprint} of ${key.issuer}`),
    ...more(issuerKeys.length - KEYS_SHOWN_MAX),
  ];
}

function verdict(result: AuditResult): string[] {
  const { findings, open } = result;
  const word = VERDICT[exitOf(result)];
  if (word === "PROVEN") return [`${word}: all ${result.size} entries, and nothing is open`];
  const first = findings.first === undefined ? "" : `, the first ${place(findings.first)}`;
  return [`${word}: ${findings.count} findings${first}; ${open.count} could not be judged`];
}

function item(finding: Finding<FindingCode | OpenCode>, rule: string): string {
  return `  ${place(finding)}: ${finding.code}: ${finding.detail} (${rule})`;
}

function place({ index, path }: Finding<string>): string {
  const parts = [index === undefined ? "" : `entry ${index}`, path ?? ""];
  return parts.filter((part) => part !== "").join(" in ");
}

function more(count: number): string[] {
  return count > 0 ? [`  and ${count} more`] : [];
}

function findingsJson({ byCode, count, first, listed }: Findings): object {
  return {
    count,
    by_code: Object.fromEntries(byCode),
    ...(first && { first: findingJson(first) }),
    listed: listed.map(findingJson),
  };
}

function findingJson({ code, detail, index, path }: Finding<string>): object {
  const where = { ...(index !== undefined && { index: String(index) }), ...(path && { path }) };
  return { code, ...where, detail };
}

function decimal(micro: bigint): string {
  return `${micro / MICRO}.${String(micro % MICRO).padStart(6, "0")}`;
}

/** What stands in an archive must not steer a terminal: of controls, only line feeds are let pass. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}]/gu, (control) => (control === "\n" ? "\n" : "\u{fffd}"));
}
