/** Extracts of how the service ran: keys, what it ran as, what was verified, what differed and was settled. */
import type { Entry } from "../../src/core/entry.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { readCompact } from "../../src/core/jws.ts";
import { daysFrom, daysOf, type Extract, type Row, rowsOf } from "./extract.ts";

const keys = rowsOf(
  {
    name: "keys",
    what: "Enrolments, keys of agents, of the log and of issuers, how they ended: all up to the period's end",
    controls: ["AC-1", "KM-1", "KM-2"],
    columns: ["key", "by", "says"],
    history: true,
  },
  ["enrolment", "key", "key_rotated", "key_revoked", "log_key", "issuer_key"],
  ({ body, kind }) => {
    const by = "by" in body ? body.by : "";
    switch (kind) {
      case "enrolment":
        return [{ key: "", by, says: body.runners.map(({ runner_id }) => runner_id).join(" ") }];
      case "key":
        return [{ key: body.kid, by, says: `enrolment ${body.enrolment}` }];
      case "key_rotated":
        return [{ key: readCompact(body.jws)?.kid ?? "", by, says: statementIn(body.jws) }];
      case "key_revoked":
        return [{ key: body.kid, by, says: `${body.last_trusted_counter}: ${body.reason}` }];
      case "log_key":
        return [{ key: body.vkey, by, says: `${body.purpose} ${body.state}` }];
      case "issuer_key":
        return [{ key: body.kid, by, says: body.issuer }];
    }
  },
);

/** What the old key says of its successor. */
function statementIn(jws: string): string {
  const payload = readCompact(jws)?.payload;
  return payload === undefined ? "" : JSON.stringify(parseCanonical(payload));
}

const environments = rowsOf(
  {
    name: "environments",
    what: "What the service ran as and how the database guarded the log: each change up to the period's end",
    controls: ["CM-1", "CM-4", "AC-2", "AC-4", "AC-12", "RT-1"],
    columns: [
      ...["version", "schema_sha256", "dependencies_sha256"],
      ...["grants_sha256", "triggers_sha256"],
    ],
    history: true,
  },
  ["service", "environment"],
  ({ body }) => {
    const none = { dependencies_sha256: "", grants_sha256: "", triggers_sha256: "" };
    const { salt: _, ...row } = { ...none, ...body };
    return [row];
  },
);

const verifications = daysOf(
  {
    name: "verifications",
    what: "Each day's verification by the service itself; `missing` is a day of which the log says nothing",
    controls: ["MO-1", "IT-1"],
    columns: ["outcome", "from", "to", "findings", "version"],
    sums: ["findings"],
  },
  { outcome: "missing", from: "", to: "", findings: "0", version: "" },
  ({ body, kind }) => {
    if (kind !== "verification") return undefined;
    const { salt: _, ...row } = body;
    return row;
  },
);

const coverage = rowsOf(
  {
    name: "coverage",
    what: "What the platform's lists of jobs cover, and how sources' own counts of events compare",
    controls: ["IN-1", "AC-7"],
    columns: ["source", "of", "from", "to", "theirs", "ours"],
    sums: ["theirs"],
  },
  ["coverage", "source_count"],
  ({ body, kind }) => {
    if (kind === "coverage") {
      const { from, jobs, runner_id, source, to } = body;
      return [{ source, of: `runner ${runner_id}`, from, to, theirs: jobs, ours: "" }];
    }
    const { counted, day, kind: of, source, stated } = body;
    return [{ source, of, from: day, to: day, theirs: stated, ours: counted }];
  },
);

/** What is open until somebody, or what was missing, ends it. */
const exceptions: Extract = {
  name: "exceptions",
  what: "Holds, conflicts and breaks of the period, or open in it: age in days and how each was settled",
  controls: ["IN-1", "IN-2", "IN-3", "IN-6", "IN-8", "IN-9"],
  columns: [
    ...["index", "at", "kind", "code", "month", "job_id", "namespace_id", "difference_ms"],
    ...["ended_by", "ended_at", "outcome", "by", "approval", "age_days"],
  ],
  open: ({ from }, put) => {
    const open = new Map<string, Row & { at: string }>();
    const end = (of: string, ended: Row & { ended_at: string }): void => {
      const row = open.get(of);
      open.delete(of);
      if (row === undefined || ended.ended_at < from) return;
      put({ ...row, ...ended, age_days: daysFrom(row.at, ended.ended_at) });
    };
    return {
      take: (entry) => {
        const row = openedBy(entry);
        if (row !== undefined) open.set(String(entry.index), row);
        const ended = endedBy(entry);
        if (ended === undefined) return;
        const { approval, by, outcome } = ended;
        const said = { ended_by: String(entry.index), ended_at: entry.at, outcome, by, approval };
        end(ended.of, said);
      },
      end: (at) => {
        for (const [of, row] of open) {
          const never = { ended_by: "", ended_at: "", outcome: "open", by: "", approval: "" };
          put({ ...row, ...never, age_days: daysFrom(row.at, at) });
          open.delete(of);
        }
      },
    };
  },
};

function openedBy({ at, body, index, kind }: Entry): (Row & { at: string }) | undefined {
  const row = { index: String(index), at, kind, code: "", month: "", job_id: "", namespace_id: "" };
  switch (kind) {
    case "hold":
      return { ...row, code: body.code, difference_ms: "" };
    case "conflict":
      return { ...row, code: `stands ${body.stands}`, difference_ms: "" };
    case "break": {
      const { code, difference_ms, job_id, month, namespace_id } = body;
      return { ...row, code, month, job_id, namespace_id, difference_ms };
    }
    default:
      return undefined;
  }
}

function endedBy({ body, kind }: Entry) {
  switch (kind) {
    case "hold_resolved":
      return { ...body, of: body.hold };
    case "conflict_resolved":
      return { ...body, of: body.conflict };
    case "break_resolved":
      return { ...body, of: body.break };
    default:
      return undefined;
  }
}

export const OPERATION = [keys, environments, verifications, coverage, exceptions];
