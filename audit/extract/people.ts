/** Extracts of who may do what, and who decided: persons are opaque ids. */
import type { Body } from "../../src/core/entry.ts";
import { canonical } from "../../src/core/json.ts";
import { daysOf, type Extract, rowsOf } from "./extract.ts";

const decisions: Extract = {
  name: "decisions",
  what: "Each proposal of the period, or ended in it: who asked, who decided, and how it ended",
  controls: ["AC-6"],
  columns: [
    ...["proposal", "proposed_at", "action", "proposer", "reason", "ticket"],
    ...["index", "at", "outcome", "decider"],
  ],
  open: ({ from }, put) => {
    const open = new Map<string, { at: string; body: Body<"proposal"> }>();
    const rowOf = (proposal: string, end: { index: string; at: string; outcome: string }) => {
      const { at: proposed_at, body } = open.get(proposal) ?? {};
      open.delete(proposal);
      const { action = "", by: proposer = "", reason = "", ticket = "" } = body ?? {};
      return { proposal, proposed_at: proposed_at ?? "", action, proposer, reason, ticket, ...end };
    };
    return {
      take: ({ at, body, index, kind }) => {
        if (kind === "proposal") open.set(String(index), { at, body });
        if (kind !== "approval" && kind !== "proposal_ended") return;
        const outcome = kind === "approval" ? "approved" : body.outcome;
        const row = rowOf(body.proposal, { index: String(index), at, outcome });
        if (at >= from) put({ ...row, decider: body.by });
      },
      end: () => {
        for (const proposal of [...open.keys()]) {
          put({ ...rowOf(proposal, { index: "", at: "", outcome: "open" }), decider: "" });
        }
      },
    };
  },
};

const roles = rowsOf(
  {
    name: "roles",
    what: "What the log is under, who has which role, and who may read it: all up to the period's end",
    controls: ["AC-3", "AC-5", "AC-6", "AC-8", "AC-9"],
    columns: ["by", "approval", "says"],
    history: true,
  },
  ["log", "mode", "role_mapping", "visibility"],
  ({ body }) => {
    const { approval = "", by = "", salt: _, ...says } = { approval: "", by: "", ...body };
    return [{ by, approval, says: canonical(says) }];
  },
);

const reviews = rowsOf(
  {
    name: "access_reviews",
    what: "Reviews of everybody who had access, each with the digest of the list that was looked at",
    controls: ["AC-11"],
    columns: ["by", "from", "to", "principals", "kept", "list_sha256"],
  },
  ["access_review"],
  ({ body: { by, from, kept, list_sha256, principals, to } }) => [
    { by, from, to, principals, kept, list_sha256 },
  ],
);

const accesses = daysOf(
  {
    name: "access_digests",
    what: "Each day's lines of the access log, by their digest; of a day whose state is `none` the log says nothing: it had no line, or has no digest",
    controls: ["AC-10", "RT-2"],
    columns: ["state", "lines", "missing", "lines_sha256"],
    sums: ["lines", "missing"],
  },
  { state: "none", lines: "", missing: "", lines_sha256: "" },
  ({ body, kind }) => {
    if (kind !== "access_digest") return undefined;
    const { salt: _, ...row } = { missing: "0", ...body };
    return { ...row, state: "digest" };
  },
);

/** Limits, packs, classes and accounts: by a person, or by a system whose events are told by their source. */
const changes = rowsOf(
  {
    name: "changes",
    what: "Each change of what bills: by whom, under which approval, or from which system's event",
    controls: ["AC-6", "AC-7", "CM-3"],
    columns: ["by", "approval", "source", "says"],
  },
  ["quota", "pack", "project_class", "account", "rate_card", "enrolment"],
  ({ body }) => {
    const { approval, by, salt: _, source, ...says } = { approval: "", source: "", ...body };
    return [{ by, approval, source, says: canonical(says) }];
  },
);

export const PEOPLE = [decisions, roles, reviews, accesses, changes];
