import { expect, test } from "vitest";
import { type Entry, type EntryOf, GENESIS_PREV } from "../../src/core/entry.ts";
import { Prefix } from "../../src/core/prefix.ts";
import { equal } from "../../src/core/text.ts";
import { testKey } from "../signing.ts";
import {
  claim,
  History,
  kidOf,
  LOG,
  LONG_AGO,
  NOW,
  REVOCATION,
  rotation,
  tokenSha256,
  UUID,
} from "./history.ts";

function entryOf(rest: Pick<Entry, "kind" | "body">, index: bigint): Entry {
  return { at: NOW, index, log: LOG, prev: GENESIS_PREV, ...rest } as Entry;
}

test("the control index is that of the newest entry that decides something", () => {
  const history = new History();
  const { prefix } = history;
  expect(prefix.controlIndex).toBe(-1n);
  history.agent(1);
  expect(prefix.controlIndex).toBe(2n);
  prefix.apply(entryOf({ kind: "attestation", body: { jws: "x" } }, 3n));
  prefix.apply(entryOf({ kind: "conflict", body: { jws: "x", stands: "0" } }, 4n));
  expect(prefix.controlIndex).toBe(2n);
  prefix.apply(entryOf({ kind: "hold", body: { jws: "x", code: "future" } }, 5n));
  prefix.apply(entryOf({ kind: "key_revoked", body: { ...REVOCATION, kid: kidOf(1) } }, 6n));
  expect(prefix.controlIndex).toBe(6n);
});

test("entries are folded in order or not at all", () => {
  const history = new History();
  history.card();
  const again = entryOf({ kind: "attestation", body: { jws: "x" } }, 1n);
  expect(() => history.prefix.apply(again)).toThrow();
});

test("a key is known with its public half, its enrolment and its own entry", () => {
  const history = new History();
  const kid = history.agent(1);
  const key = history.prefix.key(kid);
  expect(key).toMatchObject({ kid, enrolment: 1n, index: 2n, revoked: false });
  expect(key && equal(key.publicKey, testKey(1).publicKey)).toBe(true);
  expect(key && Object.hasOwn(key, "trustedUpTo")).toBe(false);
  expect(history.prefix.key(kidOf(2))).toBeUndefined();
});

test("an enrolment is found by its token's digest and remembers that it was claimed", () => {
  const history = new History();
  history.enrol(1);
  const { prefix } = history;
  expect(prefix.enrolmentOfToken(tokenSha256(1))).toBe(1n);
  expect(prefix.enrolmentOfToken(tokenSha256(2))).toBeUndefined();
  expect(prefix.claimed(1n)).toBe(false);
  history.write("key", { enrolment: "1", jws: claim(1), kid: kidOf(1) });
  expect(prefix.claimed(1n)).toBe(true);
  expect(prefix.enrolment(1n)?.runners).toHaveLength(1);
  expect(prefix.enrolment(2n)).toBeUndefined();
});

test("a successor's predecessor is the key that named it, before its own entry and after", () => {
  const history = new History();
  const kid = history.agent(1);
  expect(history.prefix.predecessor(kidOf(2))).toBeUndefined();
  history.rotate(1, 2, "7");
  expect(history.prefix.predecessor(kidOf(2))?.kid).toBe(kid);
  history.write("key", { enrolment: "1", jws: claim(2, 1), kid: kidOf(2) });
  expect(history.prefix.predecessor(kidOf(2))?.kid).toBe(kid);
});

test("a runner is answered for its own enrolments only", () => {
  const history = new History();
  history.enrol(1);
  history.enrol(2, [{ uuid: "other" }]);
  expect(history.prefix.runner(UUID, 1n, NOW)?.machine_type).toBe("small");
  expect(history.prefix.runner(UUID, 2n, NOW)).toBeUndefined();
  expect(history.prefix.runner(UUID, 9n, NOW)).toBeUndefined();
  expect(history.prefix.runner(UUID, 1n, "2025-12-31T23:59:59.999Z")).toBeUndefined();
});

test("histories list all that was said of a key, with the index that said it", () => {
  const history = new History();
  history.card();
  history.card({ effective_from: "2027-01-01T00:00:00.000Z" });
  history.classify({});
  history.limit({});
  const { prefix } = history;
  expect(prefix.cards("hosted").map((card) => card.index)).toEqual([1n, 2n]);
  expect(prefix.cards("self_managed")).toEqual([]);
  expect(prefix.classes("50").map((line) => line.class)).toEqual(["open_source"]);
  expect(prefix.limits("7").map((limit) => limit.monthly_minutes)).toEqual(["10000"]);
});

test("a log and its id are those of entry 0", () => {
  const entry: EntryOf<"log"> = {
    at: LONG_AGO,
    body: new History({ platform: "dedicated" }).prefix.log,
    index: 0n,
    kind: "log",
    log: LOG,
    prev: GENESIS_PREV,
  };
  const prefix = new Prefix(entry);
  expect(prefix.id).toBe(LOG);
  expect(prefix.log.platform).toBe("dedicated");
});

test.each([
  [
    "a key without a readable claim",
    { kind: "key", body: { enrolment: "1", jws: "x", kid: kidOf(1) } },
  ],
  [
    "a key under another's claim",
    { kind: "key", body: { enrolment: "1", jws: claim(2), kid: kidOf(1) } },
  ],
  ["a rotation that cannot be read", { kind: "key_rotated", body: { jws: "x" } }],
  ["the end of a key that never was", { kind: "key_rotated", body: { jws: rotation(8, 9, "1") } }],
] as const)("an altered log is not folded: %s", (_, rest) => {
  const history = new History();
  history.agent(1);
  expect(() => history.prefix.apply(entryOf(rest as Pick<Entry, "kind" | "body">, 3n))).toThrow();
});
