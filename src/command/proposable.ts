/** What each action of `minutebook propose` is about, a file that it takes, and what else may be in one. */
import { z } from "zod";
import { contentShape } from "../core/approval.ts";
import type { Action } from "../core/control.ts";
import type { Asked } from "../flow/control/effects.ts";

/** What the command says by itself where the file does not. */
type Filled = "reason" | "ticket" | "claim_until" | "token_sha256";

interface Proposable<A extends Action> {
  about: string;
  example: Omit<Asked<A>, Filled>;
}

const FROM_PLAN = { source: "contract", source_version: "1" };

export const PROPOSABLE: { readonly [A in Action]: Proposable<A> } = {
  account: {
    about: "who pays for a namespace, or for all others",
    example: {
      ...{ namespace_id: "1001", account_id: "A-2041", subscription_id: "S-77", ...FROM_PLAN },
    },
  },
  adjustment: {
    about: "what was charged, corrected: a credit is below zero",
    example: {
      ...{ billing_month: "2026-11-01", credit_run: "", first_line: "0" },
      lines: [
        {
          ...{ amount: "-60000.000000", entry: "42", namespace_id: "1001", project_id: "50" },
          ...{ reverses: "", usage_month: "2026-10-01" },
        },
      ],
    },
  },
  break_resolved: {
    about: "a difference, accepted or corrected",
    example: { break: "42", evidence: "", outcome: "accepted" },
  },
  conflict_resolved: {
    about: "two reports of one job: which one counts",
    example: { conflict: "42", outcome: "stands" },
  },
  credit_run: {
    about: "a correction of many charges (credit-run ask makes it of a preview)",
    example: {
      ...{ form: "credit", lines: "352", reverses: "", total: "-1234567.890000" },
      lines_sha256: "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
      selection:
        '{"as_of":"5000","from":"2026-10-05T08:00:00.000Z","share":"0.5","to":"2026-10-05T12:00:00.000Z"}',
    },
  },
  enrolment: {
    about: "runners that are billed, for an agent's key",
    example: {
      namespaces: [],
      runners: [
        {
          ...{ uuid: "5d8f1c22", runner_id: "701", runner_type: "instance", tracking: "hosted" },
          ...{ machine_type: "linux-small", effective_from: "2026-11-01T00:00:00.000Z" },
        },
      ],
    },
  },
  hold_resolved: {
    about: "a held report, let in or refused for good",
    example: { hold: "42", outcome: "released" },
  },
  log_key: {
    about: "a key of the log (key add and key retire make it)",
    example: {
      ...{ purpose: "checkpoint", state: "added" },
      vkey: "minutebook.example/0123456789abcdef0123456789abcdef+1a2b3c4d+AYEB…",
    },
  },
  mode: {
    about: "under what the log is: control, billing, systems that need no person",
    example: { billing_from: "2026-11-01T00:00:00.000Z", control: "dual", sources: ["contract"] },
  },
  month_closing: { about: "the cut-off of a month", example: { month: "2026-10-01" } },
  month_closing_withdrawn: { about: "a cut-off, taken back", example: { closing: "42" } },
  pack: {
    about: "minutes that were bought; of none: taken back",
    example: {
      ...{ namespace_id: "1001", pack_id: "P-9", minutes: "10000", ...FROM_PLAN },
      ...{ purchased_in: "2026-11-01", expires_in: "2027-10-01" },
    },
  },
  project_class: {
    about: "which factors of the rate card a project has",
    example: { project_id: "50", class: "open-source", source: "contract" },
  },
  quota: {
    about: "a namespace's limit, and what happens beyond it",
    example: {
      ...{ namespace_id: "1001", monthly_minutes: "5000", beyond: "stop", cap: "" },
      ...{ grace_minutes: "1000", ...FROM_PLAN },
    },
  },
  rate_card: {
    about: "factors by machine type and project class",
    example: {
      ...{ tracking: "hosted", runner_factors: { "linux-small": "1", "*": "2" } },
      ...{ project_factors: { "open-source": "1/2" }, not_billable: ["runner_system_failure"] },
      source: "contract",
    },
  },
  role_mapping: {
    about: "who has which role: all of it at once, and what is not said is gone",
    example: {
      grants: [
        {
          ...{ issuer: "https://id.example.com", claim: "groups", value: "finance-approvers" },
          ...{ role: "approver", namespaces: "*" },
        },
      ],
    },
  },
  visibility: { about: "whether anybody may read the log", example: { public: false } },
};

type Schema = z.core.JSONSchema._JSONSchema;

/** Of the one table of shapes, by name. */
export function membersOf(action: Action): Readonly<Record<string, Schema>> {
  return z.toJSONSchema(contentShape(action)).properties ?? {};
}

/** What the example alone does not tell: words that a member is one of, and what it may be besides. */
export function choicesOf(members: Readonly<Record<string, Schema>>): string[] {
  const found = Object.entries(members).flatMap(([name, schema]) => choices(name, schema));
  return [...new Set(found)].sort();
}

function choices(name: string, schema: Schema): string[] {
  if (typeof schema === "boolean") return [];
  const { anyOf = [], enum: words, items, properties } = schema;
  const besides = anyOf.flatMap((each) =>
    typeof each === "object" && "const" in each
      ? [`${name} may be ${JSON.stringify(each.const)}.`]
      : [],
  );
  const each = Array.isArray(items) || items === undefined ? [] : choices(name, items);
  return [
    ...(words === undefined ? [] : [`${name} is one of ${words.join(", ")}.`]),
    ...[...besides, ...each, ...(properties === undefined ? [] : choicesOf(properties))],
  ];
}
