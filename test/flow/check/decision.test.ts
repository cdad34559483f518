/** What stands without its approval, or with another's, is found from the entries alone. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { MappedRole } from "../../../src/core/control.ts";
import type { Body, Entry } from "../../../src/core/entry.ts";
import { canonical } from "../../../src/core/json.ts";
import { Prefix } from "../../../src/core/prefix.ts";
import { instantText } from "../../../src/core/unit.ts";
import { decisionRules } from "../../../src/flow/check/decision.ts";
import { CARD, enrolmentBody, LONG_AGO, QUOTA } from "../../core/history.ts";
import { LEDGER_START, TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";

let db: FreshDatabase;

beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const { salt } = CARD;
const BY = { by: "p_1", salt };
const LATER = instantText(LEDGER_START + 86_400_000);
const APPROVER: MappedRole = {
  claim: "sub",
  issuer: "https://id.example",
  namespaces: "*",
  role: "approver",
  value: "2",
};

/** Index of an approval of just this. */
function approved(ledger: TestLedger, action: Body<"proposal">["action"], asked: object): string {
  const proposal = ledger.append("proposal", {
    ...BY,
    action,
    content: canonical({ ...asked }),
    effect: "{}",
    expires_at: LATER,
    proposer: { issuer: "https://id.example", subject: "1" },
    reason: "contract",
    ticket: "OPS-1",
  });
  const said = { issuer_key: "1", proposal: String(proposal.index), token: "of nobody" };
  return String(ledger.append("approval", { by: "p_2", salt, ...said }).index);
}

/** The codes that are found, by the kind of entry. */
async function found(ledger: TestLedger): Promise<[Entry["kind"], string][]> {
  await ledger.load(db.owner);
  const [first, ...rest] = ledger.written.map(({ entry }) => entry);
  if (first?.kind !== "log") throw new Error("no log");
  const prefix = new Prefix(first);
  const findings: [Entry["kind"], string][] = [];
  for (const entry of rest) {
    for await (const [, code] of decisionRules(entry, prefix, db.reader)) {
      findings.push([entry.kind, code]);
    }
    prefix.apply(entry);
  }
  return findings;
}

test("what was approved is no finding; one character more, another kind, or nobody's approval is", async () => {
  const ledger = new TestLedger("a".repeat(32), LEDGER_START, { control: "dual" });
  const mapping = { ...BY, approval: "", grants: [APPROVER] };
  ledger.append("role_mapping", mapping);
  const { approval: _, by: __, salt: ___, ...limit } = QUOTA;
  const approval = approved(ledger, "quota", limit);
  ledger.append("quota", { ...QUOTA, ...BY, approval });
  const { by: ____, salt: _____, ...runners } = enrolmentBody(1, [{}]);
  approved(ledger, "enrolment", runners);
  ledger.append("enrolment", { ...runners, ...BY });
  expect(await found(ledger)).toEqual([]);

  // One each: none is used twice, which their key refuses.
  const [more = "", foreign = "", other = ""] = [1, 2, 3].map(() => {
    return approved(ledger, "quota", limit);
  });
  ledger.append("quota", { ...QUOTA, ...BY, approval: more, monthly_minutes: "100000" });
  ledger.append("quota", { ...QUOTA, by: "p_3", approval: foreign });
  ledger.append("quota", { ...QUOTA, ...BY, approval: "0" });
  ledger.append("rate_card", { ...CARD, ...BY, approval: other });
  ledger.append("role_mapping", mapping);
  ledger.append("enrolment", enrolmentBody(2, [{ uuid: "another" }]));
  expect(await found(ledger)).toEqual([
    ["quota", "approval-required"],
    ["quota", "approval-required"],
    ["quota", "approval-required"],
    ["rate_card", "approval-required"],
    ["role_mapping", "approval-required"],
    ["enrolment", "approval-required"],
  ]);
});

test("a log comes under two persons only when one is there to approve", async () => {
  const ledger = new TestLedger("b".repeat(32));
  const mode: Body<"mode"> = {
    ...BY,
    approval: "",
    billing_from: LONG_AGO,
    control: "dual",
    sources: [],
  };
  ledger.append("mode", mode);
  expect(await found(ledger)).toEqual([["mode", "approver-needed"]]);
});
