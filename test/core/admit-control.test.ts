import { expect, test } from "vitest";
import { CONTENT_CHARS_MAX } from "../../src/core/control.ts";
import type { Body, Kind } from "../../src/core/entry.ts";
import { canonical } from "../../src/core/json.ts";
import { Problem } from "../../src/core/problem.ts";
import { History, LONG_AGO, NOW, QUOTA } from "./history.ts";

const { approval: _, by, salt, ...ASKED } = QUOTA;
const SEALED = { by, salt };
const LATER = "2026-12-01T00:00:00.000Z";

const MODE: Body<"mode"> = {
  ...SEALED,
  approval: "",
  billing_from: LONG_AGO,
  control: "dual",
  sources: ["gitlab"],
};
const APPROVER = {
  claim: "sub",
  issuer: "https://id.example",
  namespaces: "*",
  role: "approver",
  value: "2",
} as const;
const PROPOSAL: Body<"proposal"> = {
  ...SEALED,
  action: "quota",
  content: canonical({ ...ASKED }),
  effect: "{}",
  expires_at: LATER,
  proposer: { issuer: "https://id.example", subject: "1" },
  reason: "contract",
  ticket: "OPS-1",
};

/** The code of the problem, or `admitted`. */
function answer<K extends Kind>(kind: K, body: Body<K>, history = new History()): string {
  try {
    history.write(kind, body);
    return "admitted";
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
}

test("dual control is for ever", () => {
  const history = new History();
  expect(answer("mode", { ...MODE, control: "single" }, history)).toBe("admitted");
  expect(answer("mode", MODE, history)).toBe("admitted");
  const approved = { ...MODE, approval: "1" };
  expect(answer("mode", { ...approved, control: "single" }, history)).toBe("invalid-request");
  expect(answer("mode", MODE, history)).toBe("approval-required");
  expect(answer("mode", approved, history)).toBe("admitted");
});

test("what billing begins with changes only while neither the old nor the new instant has come", () => {
  expect(answer("mode", { ...MODE, billing_from: LATER })).toBe("starts-in-the-past");
  const history = new History({ billing_from: LATER });
  expect(answer("mode", { ...MODE, billing_from: NOW }, history)).toBe("starts-in-the-past");
  const moved = { ...MODE, control: "single", billing_from: "2027-01-01T00:00:00.000Z" } as const;
  expect(answer("mode", moved, history)).toBe("admitted");
});

test("what heals is shown by an entry, and in the name of no person", () => {
  const came = { ...SEALED, approval: "", break: "1", reason: "came", ticket: "none" };
  const healed = { ...came, by: "service", evidence: "0", outcome: "healed" } as const;
  const dual = new History({ control: "dual" });
  expect(answer("break_resolved", healed, dual)).toBe("admitted");
  expect(answer("break_resolved", { ...healed, evidence: "" }, dual)).toBe("invalid-request");
  expect(answer("break_resolved", { ...healed, by: "p_one" }, dual)).toBe("invalid-request");
});

test("no system outside speaks in the service's own name", () => {
  expect(answer("mode", { ...MODE, sources: ["minutebook/credit_run"] })).toBe("invalid-request");
});

test("under dual control a mapping without an approver would be the last", () => {
  const body = { ...SEALED, approval: "", grants: [{ ...APPROVER, role: "finance" as const }] };
  expect(answer("role_mapping", body)).toBe("admitted");
  const dual = new History({ control: "dual" });
  expect(answer("role_mapping", body, dual)).toBe("approver-needed");
  expect(answer("role_mapping", { ...body, grants: [APPROVER] }, dual)).toBe("admitted");
});

test("a mapping that no proposal could say is never written", () => {
  const viewers = (count: number) => {
    const value = "x".repeat(100);
    return Array.from({ length: count }, () => ({ ...APPROVER, role: "viewer" as const, value }));
  };
  const mapping = (count: number) => ({
    ...{ ...SEALED, approval: "" },
    grants: [APPROVER, ...viewers(count)],
  });
  const sizes = Array.from({ length: 128 }, (_, count) => mapping(count));
  const admitted = sizes.filter((body) => answer("role_mapping", body) === "admitted");
  const most = admitted.at(-1) ?? mapping(0);
  expect(answer("role_mapping", mapping(admitted.length))).toBe("too-large");
  const content = canonical({ grants: most.grants });
  expect(content.length).toBeGreaterThan(CONTENT_CHARS_MAX * 0.75);
  const proposal = { ...PROPOSAL, action: "role_mapping" as const, content, effect: content };
  expect(answer("proposal", proposal)).toBe("admitted");
});

test("only a viewer is bound to namespaces", () => {
  const bound = { ...APPROVER, namespaces: ["7"] };
  const body = { ...SEALED, approval: "", grants: [bound] };
  expect(answer("role_mapping", body)).toBe("invalid-request");
  const viewer = { ...body, grants: [{ ...bound, role: "viewer" as const }] };
  expect(answer("role_mapping", viewer)).toBe("admitted");
});

test.each<[string, Partial<Body<"proposal">>, string]>([
  ["of a limit", {}, "admitted"],
  ["one that is over", { expires_at: NOW }, "invalid-request"],
  ["one of 32 days", { expires_at: "2026-12-22T12:00:00.000Z" }, "invalid-request"],
  ["content of another action", { action: "pack" }, "invalid-request"],
  ["content that is no object", { content: '["a"]' }, "invalid-request"],
  ["content in another spelling", { content: `${PROPOSAL.content} ` }, "invalid-request"],
  ["an effect that is no object", { effect: '"x"' }, "invalid-request"],
])("a proposal: %s", (_, change, expected) => {
  expect(answer("proposal", { ...PROPOSAL, ...change })).toBe(expected);
});

test("an approval holds a token", () => {
  const body = { ...SEALED, issuer_key: "1", proposal: "2", token: "x.y.z" };
  expect(answer("approval", body)).toBe("invalid-approval");
});
