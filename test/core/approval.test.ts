import fc from "fast-check";
import { expect, test } from "vitest";
import {
  bodyOf,
  contentShape,
  enrolsForMoney,
  matches,
  needsNone,
  nonceOf,
  parseContent,
} from "../../src/core/approval.ts";
import { ACTIONS } from "../../src/core/control.ts";
import type { Body } from "../../src/core/entry.ts";
import { canonical } from "../../src/core/json.ts";
import { enrolmentBody, History, LONG_AGO, NOW, PACK, QUOTA } from "./history.ts";

const JUST_AFTER = "2026-11-20T12:00:00.001Z";
const LATER = "2026-12-01T00:00:00.000Z";

const { approval: _, by, salt, effective_from, ...AT_ONCE } = QUOTA;

function proposalOf(content: object, action: Body<"proposal">["action"] = "quota") {
  return {
    action,
    by,
    content: canonical({ ...content }),
    effect: "{}",
    expires_at: LATER,
    proposer: { issuer: "https://id.example", subject: "1" },
    reason: "contract",
    salt,
    ticket: "OPS-1",
  } satisfies Body<"proposal">;
}

test("an entry is what was asked for, to the character", () => {
  const proposal = proposalOf({ ...AT_ONCE, effective_from: LATER });
  const asked: Body<"quota"> = { ...QUOTA, approval: "7", effective_from: LATER };
  expect(matches(proposal, "quota", asked, NOW)).toBe(true);
  expect(matches(proposal, "quota", { ...asked, salt: QUOTA.salt, approval: "9" }, NOW)).toBe(true);
  expect(matches(proposal, "quota", { ...asked, by: "another" }, NOW)).toBe(false);
  expect(matches(proposal, "pack", asked, NOW)).toBe(false);
});

test("no member of what was asked for can be another", () => {
  const proposal = proposalOf({ ...AT_ONCE, effective_from: LATER });
  const members = Object.keys({ ...AT_ONCE, effective_from }) as (keyof Body<"quota">)[];
  fc.assert(
    fc.property(fc.constantFrom(...members), fc.string(), (member, text) => {
      const written = { ...QUOTA, effective_from: LATER, [member]: text };
      fc.pre(text !== { ...QUOTA, effective_from: LATER }[member]);
      expect(matches(proposal, "quota", written, NOW)).toBe(false);
    }),
  );
});

test("without an instant it is at once: when it is written, or just after, and never at another", () => {
  const proposal = proposalOf(AT_ONCE);
  for (const [from, expected] of [
    [NOW, true],
    [JUST_AFTER, true],
    [LATER, false],
    [LONG_AGO, false],
  ] as const) {
    expect(matches(proposal, "quota", { ...QUOTA, effective_from: from }, NOW)).toBe(expected);
  }
  expect(bodyOf("quota", AT_ONCE, NOW, true)).toEqual({ ...AT_ONCE, effective_from: NOW });
  expect(bodyOf("quota", AT_ONCE, NOW, false)).toEqual({ ...AT_ONCE, effective_from: JUST_AFTER });
  const said = { ...AT_ONCE, effective_from: LATER };
  expect(bodyOf("quota", said, NOW, false)).toEqual(said);
  expect(bodyOf("mode", { control: "dual" }, NOW, true)).toEqual({ control: "dual" });
});

test.each(ACTIONS)("what asks for %s leaves approval, person and salt to the service", (action) => {
  const shape = contentShape(action);
  for (const name of ["approval", "by", "salt"]) {
    const issues = shape.safeParse({ [name]: "1" }).error?.issues ?? [];
    expect(issues.some(({ code }) => code === "unrecognized_keys")).toBe(true);
  }
});

test("a content is the canonical text of an object", () => {
  expect(parseContent('{"a":"1"}')).toEqual({ a: "1" });
  for (const text of ['{"a": "1"}', '["a"]', '"a"', "{}{}", '{"a":1}', "", '{"b":"1","a":"1"}']) {
    expect(parseContent(text)).toBeUndefined();
  }
});

test("a nonce has 32 bytes in 43 letters, and no two leaves have one", () => {
  expect(nonceOf(new Uint8Array(32))).toBe("A".repeat(43));
  expect(nonceOf(new Uint8Array(32).fill(255))).not.toBe(nonceOf(new Uint8Array(32).fill(254)));
});

test("only systems that the mode names change limits, packs and classes without a person", () => {
  const history = new History();
  history.write("mode", mode({ sources: ["gitlab"] }));
  expect(needsNone(history.prefix, "quota", QUOTA)).toBe(true);
  expect(needsNone(history.prefix, "quota", { ...QUOTA, source: "" })).toBe(false);
  expect(needsNone(history.prefix, "pack", PACK)).toBe(false);
  expect(needsNone(history.prefix, "mode", mode({}))).toBe(false);
  expect(needsNone(new History().prefix, "quota", QUOTA)).toBe(false);
});

test("an enrolment needs a second person for what is billed, and where a machine becomes another", () => {
  const dual = new History({ control: "dual" });
  const own = { runner_type: "group", tracking: "self_managed" } as const;
  const needs = (line: object, { prefix }: History = dual) =>
    enrolsForMoney(prefix, enrolmentBody(1, [line]));
  expect(needs({})).toBe(true);
  expect(needs({}, new History())).toBe(false);
  expect(needs(own)).toBe(false);
  dual.write("enrolment", enrolmentBody(1, [own], ["5"]));
  expect(needs(own)).toBe(false);
  expect(needs({ ...own, machine_type: "large" })).toBe(true);
});

test("on an instance that the vendor runs nobody calls an instance runner their own by themselves", () => {
  const [own, theirs] = (["instance", "project"] as const).map((runner_type) =>
    enrolmentBody(1, [{ runner_type, tracking: "self_managed" }]),
  ) as [Body<"enrolment">, Body<"enrolment">];
  for (const platform of ["dotcom", "dedicated", "self_managed"] as const) {
    const { prefix } = new History({ control: "dual", platform });
    expect(enrolsForMoney(prefix, own)).toBe(platform !== "self_managed");
    expect(enrolsForMoney(prefix, theirs)).toBe(false);
  }
});

function mode(body: Partial<Body<"mode">>): Body<"mode"> {
  const rest = { by, salt, approval: "" };
  return { ...rest, billing_from: LONG_AGO, control: "dual", sources: [], ...body };
}
