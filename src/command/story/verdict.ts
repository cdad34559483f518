/** The outcome of either verifier, in a few words. */
import type { Finished } from "./service-process.ts";

interface AuditDocument {
  logs: {
    size?: string;
    signatures?: string;
    could_not_look?: string;
    findings?: { count: number; first?: { code: string; index?: string; text?: string } };
  }[];
}

interface CheckDocument {
  entries: string;
  findings: { count: number; listed: { index: string; table: string; column: string }[] };
}

export function auditVerdict({ status, output }: Finished): string {
  const { logs } = JSON.parse(output) as AuditDocument;
  const [log] = logs;
  const first = log?.findings?.first;
  const what =
    first === undefined
      ? `${log?.size} entries and ${log?.signatures} signatures proven`
      : `entry ${first.index}: ${first.code}`;
  return `exit ${status}, ${log?.could_not_look ?? what}`;
}

interface ProofDocument {
  exit: number;
  size?: string;
  findings?: { code: string }[];
}

export function proofVerdict({ status, output }: Finished): string {
  const { findings = [], size } = JSON.parse(output) as ProofDocument;
  const [first] = findings;
  return `exit ${status}, ${first === undefined ? `in the log, under a checkpoint of ${size} entries` : first.code}`;
}

export function checkVerdict({ status, output }: Finished): string {
  const { entries, findings } = JSON.parse(output) as CheckDocument;
  const [first] = findings.listed;
  const what =
    first === undefined
      ? `${entries} entries and all that is derived from them proven`
      : `entry ${first.index}: ${first.table}.${first.column} is not what the bytes say`;
  return `exit ${status}, ${what}`;
}
