import { expect, test } from "vitest";
import { admit } from "../../src/core/admit.ts";
import type { Body, EnrolledRunner } from "../../src/core/entry.ts";
import { Problem } from "../../src/core/problem.ts";
import { TYP } from "../../src/core/report.ts";
import {
  attestation,
  CARD,
  claim,
  enrolmentBody,
  History,
  keyBody,
  kidOf,
  LOG,
  LONG_AGO,
  NOW,
  PACK,
  PROJECT_CLASS,
  REVOCATION,
  rotation,
  signed,
} from "./history.ts";

const LATER = "2026-11-20T12:00:00.001Z";
const OTHER_LOG = "f".repeat(32);

/** The code of the problem, or `admitted`. */
function answer(write: () => unknown): string {
  try {
    write();
    return "admitted";
  } catch (error) {
    if (error instanceof Problem) return error.code;
    throw error;
  }
}

test("a log has one entry of kind log", () => {
  const history = new History();
  expect(answer(() => history.write("log", history.prefix.log))).toBe("log-exists");
});

test("a body that no reader would take is not written", () => {
  const history = new History();
  expect(answer(() => history.card({ effective_from: "yesterday" }))).toBe("invalid-request");
  expect(answer(() => history.card({ runner_factors: { small: "1e3" } }))).toBe("invalid-request");
  const both = { approval: "x", runner_factors: { small: "1e3" } };
  const problem = {
    extension: { kind: "rate_card", members: ["approval", "runner_factors.small"] },
  };
  expect(() => history.card(both)).toThrow(expect.objectContaining(problem));
  const body = { ...CARD, more: "" } as Body<"rate_card">;
  expect(answer(() => history.write("rate_card", body))).toBe("invalid-request");
});

test("a body that would burst its entry is too large", () => {
  const history = new History();
  const names = Array.from({ length: 256 }, (_, i) => [`${"x".repeat(250)}${i}`, "1"]);
  expect(answer(() => history.card({ runner_factors: Object.fromEntries(names) }))).toBe(
    "too-large",
  );
  const fitting = Object.fromEntries(names.slice(0, 240));
  expect(answer(() => history.card({ runner_factors: fitting }))).toBe("admitted");
});

test("a kind without a rule is bound by its shape alone", () => {
  const history = new History();
  const service = { schema_sha256: claim(1), salt: CARD.salt, version: "1" };
  expect(answer(() => history.write("service", service))).toBe("invalid-request");
  const schema_sha256 = enrolmentBody(1, []).token_sha256;
  expect(answer(() => history.write("service", { ...service, schema_sha256 }))).toBe("admitted");
});

test("invariant 12: under dual control nobody changes money alone; under single nobody pretends an approval", () => {
  const dual = new History({ control: "dual" });
  expect(answer(() => dual.card())).toBe("approval-required");
  expect(answer(() => dual.classify({}))).toBe("approval-required");
  expect(answer(() => dual.limit({}))).toBe("approval-required");
  expect(answer(() => dual.write("pack", PACK))).toBe("approval-required");
  expect(answer(() => dual.close("2026-10-01"))).toBe("approval-required");
  expect(answer(() => dual.card({ approval: "1" }))).toBe("admitted");
  expect(answer(() => new History().card({ approval: "1" }))).toBe("invalid-request");
});

test.each<[string, Partial<EnrolledRunner>[], string[], string]>([
  ["an instance runner without namespaces", [{}], [], "admitted"],
  ["an instance runner bound to one", [{}], ["7"], "namespaces-needed"],
  ["a group runner without", [{ runner_type: "group" }], [], "namespaces-needed"],
  ["a project runner bound to one", [{ runner_type: "project" }], ["7"], "admitted"],
  ["both sorts at once", [{}, { uuid: "b", runner_type: "group" }], ["7"], "namespaces-needed"],
])("an enrolment of %s: %s", (_, lines, namespaces, expected) => {
  expect(answer(() => new History().enrol(1, lines, namespaces))).toBe(expected);
});

test("one uuid never has two trackings in a log, nor in one enrolment", () => {
  const history = new History();
  const both = [{}, { tracking: "self_managed", effective_from: LATER }] as const;
  expect(answer(() => history.enrol(1, both))).toBe("two-trackings");
  history.enrol(1);
  const other = { tracking: "self_managed", effective_from: LATER } as const;
  expect(answer(() => history.enrol(2, [other]))).toBe("two-trackings");
  expect(answer(() => history.enrol(2, [{ effective_from: LATER }]))).toBe("admitted");
});

test("only the first of its kind may start before it is written; the next starts after it", () => {
  const history = new History();
  const from = (effective_from: string): Partial<EnrolledRunner>[] => [{ effective_from }];
  expect(answer(() => history.enrol(1, [{}, { effective_from: NOW }]))).toBe("starts-in-the-past");
  expect(answer(() => history.enrol(1, [{}, { effective_from: LATER }]))).toBe("admitted");
  expect(answer(() => history.enrol(2, from(NOW)))).toBe("starts-in-the-past");
  expect(answer(() => history.enrol(2, from(LATER)))).toBe("admitted");

  expect(answer(() => history.card())).toBe("admitted");
  expect(answer(() => history.card({ effective_from: NOW }))).toBe("starts-in-the-past");
  expect(answer(() => history.card({ effective_from: LATER }))).toBe("admitted");
  expect(answer(() => history.card({ tracking: "self_managed" }))).toBe("admitted");

  expect(answer(() => history.classify({}))).toBe("admitted");
  expect(answer(() => history.classify({ effective_from: NOW }))).toBe("starts-in-the-past");
  expect(answer(() => history.classify({ effective_from: LATER }))).toBe("admitted");
  expect(answer(() => history.classify({ project_id: "51" }))).toBe("admitted");

  const next = { source_version: "2" };
  expect(answer(() => history.limit({}))).toBe("admitted");
  expect(answer(() => history.limit({ ...next, effective_from: NOW }))).toBe("starts-in-the-past");
  expect(answer(() => history.limit({ ...next, effective_from: LATER }))).toBe("admitted");
  expect(answer(() => history.limit({ namespace_id: "8" }))).toBe("admitted");
});

test("what stops at its limit has no cap, and what is billed beyond may have one", () => {
  const capped = (beyond: "stop" | "bill") =>
    answer(() => new History().limit({ beyond, cap: "0", grace_minutes: "0" }));
  expect([capped("stop"), capped("bill")]).toEqual(["invalid-request", "admitted"]);
});

test("a pack expires no sooner than it is bought", () => {
  const expiring = (expires_in: string) =>
    answer(() => new History().write("pack", { ...PACK, expires_in }));
  expect(expiring("2026-10-01")).toBe("invalid-request");
  expect(expiring(PACK.purchased_in)).toBe("admitted");
  const dual = new History({ control: "dual" });
  expect(answer(() => dual.write("pack", PACK))).toBe("approval-required");
});

test("project factors are for hosted runners of dotcom only", () => {
  const discount = { project_factors: { oss: "0.5" } };
  const refused = "project-factors-not-applicable";
  expect(answer(() => new History().card({ ...discount, tracking: "self_managed" }))).toBe(refused);
  const dedicated = new History({ platform: "dedicated" });
  expect(answer(() => dedicated.card(discount))).toBe(refused);
  expect(answer(() => dedicated.card({ project_factors: {} }))).toBe("admitted");
  expect(answer(() => new History().card(discount))).toBe("admitted");
});

test("a factor that has no value is refused, and so is a machine's share of somebody's minutes", () => {
  const history = new History();
  const runner = (text: string): string =>
    answer(() => history.card({ runner_factors: { a: text } }));
  const project = (text: string): string =>
    answer(() => history.card({ project_factors: { a: text } }));
  expect(runner("1/0")).toBe("invalid-factor");
  expect(runner("monthly_minutes/300000")).toBe("invalid-factor");
  expect(project("1/0")).toBe("invalid-factor");
  expect(project("monthly_minutes/300000")).toBe("admitted");
});

test("an older or repeated version of a limit changes nothing; each source counts its own", () => {
  const history = new History();
  const later = { effective_from: LATER };
  history.limit({ source_version: "10" });
  expect(answer(() => history.limit({ ...later, source_version: "9" }))).toBe(
    "stale-source-version",
  );
  expect(answer(() => history.limit({ ...later, source_version: "10" }))).toBe(
    "stale-source-version",
  );
  expect(answer(() => history.limit({ ...later, source: "desk", source_version: "1" }))).toBe(
    "admitted",
  );
  expect(answer(() => history.limit({ ...later, source_version: "11" }))).toBe("admitted");
});

test("an enrolment is claimed once, in time, with its own token, on its own log", () => {
  const history = new History();
  const enrolment = history.enrol(1);
  const key = (body: Body<"key">, at = NOW): string => answer(() => history.write("key", body, at));
  const late = "2026-12-31T00:00:00.001Z";
  expect(key({ ...keyBody(1, enrolment), jws: "x" })).toBe("malformed");
  expect(key({ ...keyBody(1, enrolment), kid: kidOf(2) })).toBe("malformed");
  expect(key({ ...keyBody(1, enrolment), jws: claim(1, 1, OTHER_LOG) })).toBe("wrong-log");
  expect(key(keyBody(1, enrolment, 2))).toBe("unknown-token");
  expect(key(keyBody(1, "9"))).toBe("unknown-token");
  expect(key(keyBody(1, enrolment), late)).toBe("token-expired");
  expect(key(keyBody(1, enrolment), "2026-12-31T00:00:00.000Z")).toBe("admitted");
  expect(key(keyBody(1, enrolment))).toBe("key-in-use");
  expect(key(keyBody(2, enrolment, 1))).toBe("token-used");
  expect(key(keyBody(2, enrolment, 1), late)).toBe("token-used");
});

test("a rotation's successor takes over the old key's enrolment, late too, and nobody else does", () => {
  const history = new History();
  history.agent(1);
  history.agent(4, [{ uuid: "b" }]);
  history.rotate(1, 2, "7");
  const key = (body: Body<"key">): string =>
    answer(() => history.write("key", body, "2027-06-01T00:00:00.000Z"));
  expect(key(keyBody(3, "1", 1))).toBe("token-used");
  expect(key(keyBody(2, "3", 4))).toBe("token-used");
  expect(key(keyBody(2, "1", 1))).toBe("admitted");
  expect(key(keyBody(2, "1", 1))).toBe("key-in-use");
  expect(history.prefix.key(kidOf(2))?.enrolment).toBe(1n);
});

test("a revoked key leaves nothing to the heir that it named", () => {
  const history = new History();
  history.agent(1);
  history.rotate(1, 2, "7");
  history.revoke(1, "3");
  expect(answer(() => history.write("key", keyBody(2, "1", 1)))).toBe("token-used");
  history.agent(4, [{ uuid: "b" }]);
  expect(answer(() => history.rotate(4, 2, "7"))).toBe("key-in-use");
});

test("a key is rotated once, by itself, on its log, to a key that is nobody's yet", () => {
  const history = new History();
  history.agent(1);
  history.agent(3, [{ uuid: "b" }]);
  const rotated = (jws: string): string => answer(() => history.write("key_rotated", { jws }));
  expect(rotated("x")).toBe("malformed");
  expect(rotated(rotation(1, 2, "7", OTHER_LOG))).toBe("wrong-log");
  expect(rotated(rotation(9, 2, "7"))).toBe("unknown-key");
  expect(rotated(rotation(1, 1, "7"))).toBe("key-in-use");
  expect(rotated(rotation(1, 3, "7"))).toBe("key-in-use");
  expect(rotated(rotation(1, 2, "7"))).toBe("admitted");
  expect(rotated(rotation(1, 4, "7"))).toBe("key-has-ended");
  expect(rotated(rotation(3, 2, "7"))).toBe("key-in-use");
});

test("a key may be revoked after its rotation, and again only to an earlier counter", () => {
  const history = new History();
  history.agent(1);
  const revoke = (counter: string): string => answer(() => history.revoke(1, counter));
  const unknown = { ...REVOCATION, kid: kidOf(9) };
  expect(answer(() => history.write("key_revoked", unknown))).toBe("not-found");
  history.rotate(1, 2, "7");
  expect(revoke("9")).toBe("admitted");
  expect(revoke("7")).toBe("key-has-ended");
  expect(revoke("6")).toBe("admitted");
  expect(revoke("6")).toBe("key-has-ended");
  expect(answer(() => history.rotate(1, 4, "1"))).toBe("key-has-ended");
});

test("an attestation is by a key of this log, about this log, and vouches for no counter past its end", () => {
  const history = new History();
  const attest = (counter: string, seed = 1, log = LOG): string =>
    answer(() => history.write("attestation", { jws: attestation(seed, counter, log) }));
  expect(attest("1")).toBe("unknown-key");
  history.agent(1);
  expect(attest("9")).toBe("admitted");
  expect(attest("9")).toBe("admitted");
  expect(attest("1", 1, OTHER_LOG)).toBe("wrong-log");
  for (const jws of ["x", claim(1), signed(1, TYP.attestation, {})]) {
    expect(answer(() => history.write("attestation", { jws }))).toBe("malformed");
  }
  history.rotate(1, 2, "7");
  expect([attest("8"), attest("7")]).toEqual(["key-has-ended", "admitted"]);
  history.revoke(1, "5");
  expect([attest("6"), attest("5")]).toEqual(["key-has-ended", "admitted"]);
});

test("months close one after the other, when they are over, and only the last is withdrawn", () => {
  const history = new History();
  expect(answer(() => history.close("2026-11-01"))).toBe("month-not-ready");
  const september = history.close("2026-09-01");
  expect(answer(() => history.close("2026-09-01"))).toBe("months-in-order");
  expect(answer(() => history.close("2026-08-01"))).toBe("months-in-order");
  expect(answer(() => history.close("2026-11-01", "2027-01-01T00:00:00.000Z"))).toBe(
    "months-in-order",
  );
  const october = history.close("2026-10-01");
  expect(answer(() => history.withdraw(september))).toBe("months-in-order");
  expect(answer(() => history.withdraw(october))).toBe("admitted");
  expect(answer(() => history.withdraw(october))).toBe("months-in-order");
  expect(answer(() => history.withdraw(september))).toBe("admitted");
  expect(answer(() => history.withdraw(september))).toBe("months-in-order");
  expect(answer(() => history.close("2026-01-01"))).toBe("admitted");
});

test("to ask whether an entry may be written changes nothing", () => {
  const { prefix } = new History();
  admit(prefix, "rate_card", CARD, NOW);
  admit(prefix, "project_class", PROJECT_CLASS, LONG_AGO);
  expect(prefix.controlIndex).toBe(-1n);
  expect(prefix.cards("hosted")).toEqual([]);
});
