/** Persons who decide at the same moment, at two processes of the service on one PostgreSQL. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Service } from "../../src/command/service.ts";
import type { Kind } from "../../src/core/entry.ts";
import { ofKind } from "../flow/door.ts";
import { coded, FourEyes, type Opened } from "./four-eyes.ts";
import { type Answered, ask, beside } from "./house.ts";

const ROUNDS = 6;

let desk: FourEyes;
let second: Service;
/** Another approver than person 2. */
let third: string;

beforeAll(async () => {
  desk = await FourEyes.open();
  second = await beside(desk.house);
  third = await desk.issuer.bearer("3", ["approver"]);
});

afterAll(() => desk.house.close());

const countOf = async (kind: Kind) => ofKind(await desk.entries(), kind).length;
const written = (answers: readonly Answered[]) => answers.filter(({ status }) => status === 201);

/** Half of the rounds the other way round: neither process is always the first. */
function turned<T>(round: number, acts: readonly T[]): T[] {
  return round % 2 === 0 ? [...acts] : [...acts].reverse();
}

const approveHere = (opened: Opened) => desk.approve(opened);
const approveThere = (opened: Opened) =>
  desk.approve(opened, { subject: "3", token: third, at: second });
const refuseThere = (opened: Opened) =>
  ask(second, `POST ${desk.path(opened)}/refusal`, { token: third, json: { reason: "no" } });
const withdrawThere = (opened: Opened) =>
  ask(second, `POST ${desk.path(opened)}/withdrawal`, {
    token: desk.proposer,
    json: { reason: "no" },
  });

test.each([
  ["two approvals", approveThere],
  ["an approval and a refusal", refuseThere],
  ["an approval and a withdrawal", withdrawThere],
])("of %s at once exactly one is written, and what it decides", async (_, other) => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const opened = await desk.opened();
    const before = await countOf("quota");
    const acts = turned(round, [approveHere, other]);
    const answers = await Promise.all(acts.map((act) => act(opened)));
    expect(written(answers)).toHaveLength(1);
    const lost = answers.filter(({ status }) => status !== 201);
    expect(lost.map(coded)).toEqual([[409, "proposal-ended"]]);
    const approved = (await desk.state(opened)) === "approved";
    expect(await countOf("quota")).toBe(before + (approved ? 1 : 0));
  }
});

test("of two proposals with the same effect, approved at once, exactly one has it", async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const content = desk.limit();
    const [one, two] = [await desk.opened({ content }), await desk.opened({ content })];
    const before = await countOf("quota");
    const acts = [() => approveHere(one), () => approveThere(two)];
    const answers = await Promise.all(turned(round, acts).map((act) => act()));
    expect(written(answers)).toHaveLength(1);
    const lost = answers.filter(({ status }) => status !== 201);
    expect(lost.map(coded)).toEqual([[409, "stale-source-version"]]);
    expect(await countOf("quota")).toBe(before + 1);
    const states = [await desk.state(one), await desk.state(two)];
    expect(states.sort()).toEqual(["approved", "open"]);
  }
});

test("a key that two approvals bring at once stands on the log once", async () => {
  desk.issuer.rotate();
  await desk.signIn();
  third = await desk.issuer.bearer("3", ["approver"]);
  const before = await countOf("issuer_key");
  const [one, two] = [await desk.opened(), await desk.opened()];
  const answers = await Promise.all([approveHere(one), approveThere(two)]);
  // Which of the limits comes first decides whether the other is stale.
  expect(written(answers).length).toBeGreaterThan(0);
  expect(await countOf("issuer_key")).toBe(before + 1);
});
