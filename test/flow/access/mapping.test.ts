/** What somebody holds: by configuration, by the logs' own mappings, and less what they are barred from. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type MappedRole, ROLES } from "../../../src/core/control.ts";
import { canBeBound, covers, type Holding } from "../../../src/flow/access/grant.ts";
import { type Bearer, holdingsOf, standingOf } from "../../../src/flow/access/mapping.ts";

const [A, B, C] = ["a", "b", "c"].map((letter) => letter.repeat(32)) as [string, string, string];

const bearer: Bearer = {
  ...{ id: "p_1", issuer: "https://one.example", subject: "s", isLocal: false },
  claims: { groups: ["money", "ops"], team: "red" },
  configured: [
    { role: "operator", logs: "*", namespaces: "*" },
    { role: "auditor", logs: [A, B], namespaces: "*" },
  ],
};

const grant = (more: Partial<MappedRole>): MappedRole => ({
  ...{ claim: "groups", issuer: "https://one.example", namespaces: "*" },
  ...{ role: "finance", value: "money" },
  ...more,
});

function rolesOn(log: string, holdings: readonly Holding[] | undefined): string[] | undefined {
  return holdings?.filter((holding) => covers(holding, log)).map(({ role }) => role);
}

const nobody = new Map<string, ReadonlySet<string>>();

test("on a log with a mapping its newest one counts alone; on others the configuration does", () => {
  const held = holdingsOf(bearer, standingOf(new Map([[A, [grant({})]]]), nobody));
  expect(rolesOn(A, held)).toEqual(["finance"]);
  expect(rolesOn(B, held)).toEqual(["operator", "auditor"]);
  expect(rolesOn(C, held)).toEqual(["operator"]);
});

test("a mapping that gives somebody nothing leaves them nothing", () => {
  const held = holdingsOf(bearer, standingOf(new Map([[A, []]]), nobody));
  expect(rolesOn(A, held)).toEqual([]);
});

test.each<[string, Partial<MappedRole>]>([
  ["another issuer", { issuer: "https://two.example" }],
  ["another claim", { claim: "roles" }],
  ["another value", { value: "Money" }],
  ["a claim that is everybody's by inheritance", { claim: "constructor", value: "" }],
  ["namespaces of a role that cannot be bound to them", { namespaces: ["7"] }],
])("a mapping of %s gives nothing", (_, more) => {
  const held = holdingsOf(bearer, standingOf(new Map([[A, [grant(more)]]]), nobody));
  expect(rolesOn(A, held)).toEqual([]);
});

test("a viewer is given the namespaces that the mapping names", () => {
  const mapping = [grant({ claim: "team", value: "red", role: "viewer", namespaces: ["7", "8"] })];
  const held = holdingsOf(bearer, standingOf(new Map([[A, mapping]]), nobody));
  expect(held?.at(-1)).toEqual({ role: "viewer", logs: [A], namespaces: ["7", "8"] });
});

test("who is barred from a log holds nothing there, by mapping or by configuration; from all, nothing at all", () => {
  const mappings = new Map([[A, [grant({})]]]);
  const held = holdingsOf(bearer, standingOf(mappings, new Map([["p_1", new Set([A, C])]])));
  expect([rolesOn(A, held), rolesOn(B, held), rolesOn(C, held)]).toEqual([
    [],
    ["operator", "auditor"],
    [],
  ]);
  const all = standingOf(mappings, new Map([["p_1", new Set([""])]]));
  expect(holdingsOf(bearer, all)).toBeUndefined();
  const another = standingOf(mappings, new Map([["p_2", new Set([""])]]));
  expect(holdingsOf(bearer, another)).toBeDefined();
});

test("development's own token holds on a mapped log what both it and the log say", () => {
  const local: Bearer = {
    ...bearer,
    isLocal: true,
    claims: { roles: ["viewer", "operator"] },
    configured: [
      { role: "viewer", logs: [A], namespaces: ["7", "9"] },
      { role: "operator", logs: [B], namespaces: "*" },
    ],
  };
  const mapping = [
    grant({ claim: "roles", value: "viewer", role: "viewer", namespaces: ["7", "8"] }),
    grant({ claim: "roles", value: "operator", role: "operator" }),
  ];
  const held = holdingsOf(local, standingOf(new Map([[A, mapping]]), nobody));
  expect(held).toEqual([
    { role: "operator", logs: [B], namespaces: "*" },
    { role: "viewer", logs: [A], namespaces: ["7"] },
  ]);
});

const anyGrant = fc.record<MappedRole>({
  claim: fc.constantFrom("groups", "team"),
  issuer: fc.constantFrom("https://one.example", "https://two.example"),
  namespaces: fc.oneof(fc.constant("*" as const), fc.constant<string[]>(["7"])),
  role: fc.constantFrom(...ROLES),
  value: fc.constantFrom("money", "ops", "red", "blue"),
});

test("the index over all mappings gives what reading each of them would", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom(A, B, C), fc.array(anyGrant, { maxLength: 6 }))),
      (pairs) => {
        const mappings = new Map(pairs);
        const held = holdingsOf(bearer, standingOf(mappings, nobody));
        for (const [log, grants] of mappings) {
          const naive = grants.filter(({ claim, issuer, namespaces, role, value }) => {
            const has = claim === "team" ? value === "red" : ["money", "ops"].includes(value);
            const kept = namespaces === "*" || canBeBound(role);
            return issuer === bearer.issuer && has && kept;
          });
          expect(rolesOn(log, held)?.sort()).toEqual(naive.map(({ role }) => role).sort());
        }
      },
    ),
  );
});
