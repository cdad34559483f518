import fc from "fast-check";
import { expect, test } from "vitest";
import { admit } from "../../src/core/admit.ts";
import type { Body } from "../../src/core/entry.ts";
import { LogKeys, type Purpose } from "../../src/core/log-key.ts";
import { formatVkey } from "../../src/core/note.ts";
import { Problem } from "../../src/core/problem.ts";
import { testKey } from "../signing.ts";
import { CARD, History, LOG, NOW } from "./history.ts";

const ORIGIN = `minutebook.example/${LOG}`;

function body(
  state: "added" | "retired",
  seed: number,
  more: Partial<Body<"log_key">> = {},
): Body<"log_key"> {
  const purpose = more.purpose ?? "checkpoint";
  const name = purpose === "checkpoint" ? ORIGIN : `${ORIGIN}/receipt`;
  const vkey = formatVkey(name, testKey(seed).publicKey);
  return { approval: "", by: "p_ops", purpose, salt: CARD.salt, state, vkey, ...more };
}

/** What the entries are answered in turn; one that is refused changes nothing. */
function answers(bodies: readonly Body<"log_key">[]): string[] {
  const keys = new LogKeys();
  return bodies.map((entry, i) => {
    try {
      keys.assertNext(entry);
    } catch (error) {
      if (error instanceof Problem) return error.code;
      throw error;
    }
    keys.apply({ body: entry, index: BigInt(i) });
    return "admitted";
  });
}

test("a key is added, and then the log's first retired, which no entry had named", () => {
  expect(answers([body("added", 1), body("retired", 9)])).toEqual(["admitted", "admitted"]);
  const keys = new LogKeys();
  expect([keys.firstInForce("checkpoint"), keys.named("checkpoint")]).toEqual([true, []]);
  keys.apply({ body: body("added", 1), index: 4n });
  keys.apply({ body: body("retired", 9), index: 7n });
  expect(keys.firstInForce("checkpoint")).toBe(false);
  expect(keys.named("checkpoint")).toEqual([
    { vkey: body("added", 1).vkey, state: "added", index: 4n },
    { vkey: body("added", 9).vkey, state: "retired", index: 7n },
  ]);
  expect([keys.firstInForce("receipt"), keys.named("receipt")]).toEqual([true, []]);
});

test.each<[string, Body<"log_key">[]]>([
  ["last-log-key", [body("retired", 9)]],
  ["last-log-key", [body("added", 1), body("retired", 9), body("retired", 1)]],
  ["key-in-use", [body("added", 1), body("added", 1)]],
  ["key-has-ended", [body("added", 1), body("retired", 1), body("retired", 1)]],
  // Two keys cannot both have been the first.
  ["key-has-ended", [body("added", 1), body("retired", 9), body("retired", 8)]],
  // Keys of receipts are no keys of checkpoints.
  ["last-log-key", [body("added", 1, { purpose: "receipt" }), body("retired", 9)]],
])("refused as %s: the last of these entries", (code, bodies) => {
  expect(answers(bodies).at(-1)).toBe(code);
});

test("whatever is asked, a log has a key of each purpose, and what is in force is what was added and not retired", () => {
  const asked = fc.array(
    fc.tuple(fc.constantFrom("added", "retired"), fc.integer({ min: 1, max: 4 }), fc.boolean()),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(asked, (changes) => {
      const keys = new LogKeys();
      /** By purpose: the seeds in force, of which the first's is 4. */
      const naive: Record<Purpose, Set<number>> = {
        checkpoint: new Set([4]),
        receipt: new Set([4]),
      };
      changes.forEach(([state, seed, receipt], i) => {
        const purpose = receipt ? "receipt" : "checkpoint";
        const entry = body(state as "added", seed, { purpose });
        const admitted = (() => {
          try {
            keys.assertNext(entry);
            return true;
          } catch {
            return false;
          }
        })();
        const inForce = naive[purpose];
        // Nobody adds the first, which is in force without an entry; flow/key/log-key sees to that.
        if (!admitted || (seed === 4 && state === "added")) return;
        keys.apply({ body: entry, index: BigInt(i) });
        if (state === "added") inForce.add(seed);
        else if (!inForce.delete(seed)) inForce.delete(4);
        expect(inForce.size).toBeGreaterThan(0);
        const named = keys.named(purpose).filter((key) => key.state === "added");
        const first = keys.firstInForce(purpose) ? 1 : 0;
        expect(named.length + first).toBe(inForce.size);
      });
    }),
    { numRuns: 200 },
  );
});

test("a log's key is an admissible key under the name of its purpose on that log", () => {
  const history = new History();
  const write = (more: Partial<Body<"log_key">>): unknown =>
    admit(history.prefix, "log_key", body("added", 1, more), NOW);
  const { publicKey } = testKey(1);
  const inadmissible = expect.objectContaining({ code: "inadmissible-key" });
  expect(() => write({})).not.toThrow();
  expect(() => write({ purpose: "receipt" })).not.toThrow();
  for (const vkey of [
    "no key",
    formatVkey(`${ORIGIN}/receipt`, publicKey),
    formatVkey(`minutebook.example/${"f".repeat(32)}`, publicKey),
    formatVkey(ORIGIN, publicKey, "cosignature"),
    formatVkey(ORIGIN, new Uint8Array(32)), // of small order
  ]) {
    expect(() => write({ vkey }), vkey).toThrow(inadmissible);
  }
  expect(() => write({ purpose: "receipt", vkey: formatVkey(ORIGIN, publicKey) })).toThrow(
    inadmissible,
  );
});
