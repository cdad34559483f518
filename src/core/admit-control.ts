/** The rules of `admit` for the entries by which two persons decide. */
import type { Rule } from "./admit.ts";
import { contentShape, hasApprover, isSayable, parseContent } from "./approval.ts";
import { readIdToken } from "./id-token.ts";
import { misshapen, Problem } from "./problem.ts";
import { epochMs } from "./unit.ts";

const DAY_MS = 86_400_000;
export const PROPOSAL_DAYS_MAX = 31;

/** What begins so is of the service itself, and of no system outside. */
const OWN_SOURCE = "minutebook/";

const mode: Rule<"mode"> = (prefix, { billing_from, control, sources }, at) => {
  if (prefix.control === "dual" && control === "single") misshapen("mode", "control");
  // What was rated by the one must not have been rated by the other.
  const moved = billing_from !== prefix.billingFrom;
  const settled = [billing_from, prefix.billingFrom].find((instant) => instant <= at);
  if (moved && settled !== undefined) {
    throw new Problem("starts-in-the-past", { effective_from: settled, at });
  }
  if (sources.some((source) => source.startsWith(OWN_SOURCE))) misshapen("mode", "sources");
};

/** Without an approver nothing could ever be decided again, nor could what nobody can propose. */
const roleMapping: Rule<"role_mapping"> = (prefix, { grants }) => {
  if (!isSayable({ grants })) throw new Problem("too-large", { kind: "role_mapping" });
  if (prefix.control === "dual" && !hasApprover(grants)) throw new Problem("approver-needed");
  // Any other role sees all of its log, so that a bound on it would only look like one.
  if (grants.some(({ namespaces, role }) => role !== "viewer" && namespaces !== "*")) {
    misshapen("role_mapping", "grants");
  }
};

const proposal: Rule<"proposal"> = (_, { action, content, effect, expires_at }, at) => {
  const lasts = epochMs(expires_at) - epochMs(at);
  if (lasts <= 0 || lasts > PROPOSAL_DAYS_MAX * DAY_MS) misshapen("proposal", "expires_at");
  if (!contentShape(action).safeParse(parseContent(content)).success) {
    misshapen("proposal", "content");
  }
  if (parseContent(effect) === undefined) misshapen("proposal", "effect");
};

const approval: Rule<"approval"> = (_, { token }) => {
  if (readIdToken(token) === undefined) throw new Problem("invalid-approval");
};

export const CONTROL_RULES = { mode, role_mapping: roleMapping, proposal, approval } as const;
