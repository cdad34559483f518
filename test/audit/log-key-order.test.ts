/** Both judge the order of a log's keys, each by an implementation of its own. */
import { expect, test } from "vitest";
import { Findings, type OpenCode } from "../../audit/finding.ts";
import { admit } from "../../audit/prefix/admission.ts";
import type { Body, EntryOf } from "../../src/core/entry.ts";
import { decodeEntry } from "../../src/core/entry.ts";
import { LogKeys } from "../../src/core/log-key.ts";
import { LOG_ID, NOW, SALT, TestLog } from "./log.ts";
import { stateOf } from "./state.ts";

const LENGTH = 5;

type Change = Body<"log_key">;

/** The form of a key is judged beside its order, and costs more. */
const CHANGES = ["a", "b", "c"].flatMap((vkey) =>
  (["added", "retired"] as const).map((state): Change => {
    return { approval: "", by: "operator", purpose: "checkpoint", salt: SALT, state, vkey };
  }),
);

const FIRST = first();

/** Whether the service refuses the last of these, after all others. */
function refused(changes: readonly Change[]): boolean {
  const keys = new LogKeys();
  for (const [i, body] of changes.slice(0, -1).entries())
    keys.apply({ body, index: BigInt(i + 1) });
  try {
    for (const body of changes.slice(-1)) keys.assertNext(body);
    return false;
  } catch {
    return true;
  }
}

function found(changes: readonly Change[]): boolean {
  const findings = new Findings();
  const state = stateOf(FIRST);
  for (const [i, body] of changes.entries()) {
    const place = { at: NOW, log: LOG_ID, index: BigInt(i + 1), prev: new Uint8Array(32) };
    const outcome = { findings, open: new Findings<OpenCode>() };
    admit(state, { kind: "log_key", body, ...place }, place.prev, outcome);
  }
  return findings.byCode.has("log-key-order");
}

test("what the service refuses of a log's keys is found, and nothing else", () => {
  let orders: Change[][] = [[]];
  for (let length = 1; length <= LENGTH; length += 1) {
    const longer = orders.flatMap((order) => CHANGES.map((change) => [...order, change]));
    for (const order of longer) {
      const told = order.map(({ state, vkey }) => `${state} ${vkey}`).join("\n");
      expect(found(order), told).toBe(refused(order));
    }
    orders = longer.filter((order) => !refused(order));
  }
  expect(orders.length).toBeGreaterThan(0);
});

function first(): EntryOf<"log"> {
  const entry = decodeEntry(new TestLog().entries[0] ?? new Uint8Array());
  if (typeof entry === "string" || entry.kind !== "log") throw new Error("no log's own entry");
  return entry;
}
