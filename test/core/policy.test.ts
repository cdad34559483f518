import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { formatVkey } from "../../src/core/note.ts";
import { type Policy, parsePolicy, reachesQuorum, witnessId } from "../../src/core/policy.ts";
import { testKey } from "../signing.ts";

const log = (seed: number): string => formatVkey(`log-${seed}`, testKey(seed).publicKey);
const witness = (seed: number, name = `key-${seed}`): string =>
  formatVkey(name, testKey(seed).publicKey, "cosignature");

const SIX = [1, 2, 3, 4, 5, 6];
const EXAMPLE = [
  `log ${log(9)} https://log.example/`,
  ...SIX.slice(0, 3).map((seed) => `witness X${seed} ${witness(seed)}`),
  "group X 2 X1 X2 X3",
  ...SIX.slice(3).map((seed) => `witness Y${seed} ${witness(seed)} https://y.example/${seed}`),
  "group Y any Y4 Y5 Y6",
  "group X-and-Y all X Y",
  "quorum X-and-Y",
  "",
].join("\n");

function policyOf(text: string): Policy {
  const policy = parsePolicy(text);
  if ("problem" in policy) throw new Error(`${policy.line}: ${policy.problem}`);
  return policy;
}

/** Does the quorum hold when the witnesses with these keys have cosigned? */
function reached(policy: Policy, seeds: readonly number[]): boolean {
  const keys = policy.witnesses.filter(({ vkey }) =>
    seeds.some((seed) => witness(seed).startsWith(`${vkey.name}+`)),
  );
  return reachesQuorum(policy, new Set(keys.map(({ vkey }) => witnessId(vkey))));
}

test("logs and witnesses are read with their keys and addresses", () => {
  const { logs, witnesses } = policyOf(EXAMPLE);
  expect(logs).toMatchObject([{ vkey: { name: "log-9" }, url: "https://log.example/" }]);
  expect(witnesses.map(({ name }) => name)).toEqual(["X1", "X2", "X3", "Y4", "Y5", "Y6"]);
  expect(witnesses[0]).not.toHaveProperty("url");
  expect(witnesses[5]).toMatchObject({ url: "https://y.example/6", vkey: { type: "cosignature" } });
});

test("two of the first group and one of the second are the example's quorum, and nothing less", () => {
  const policy = policyOf(EXAMPLE);
  fc.assert(
    fc.property(fc.subarray(SIX), (seeds) => {
      const first = seeds.filter((seed) => seed <= 3).length;
      expect(reached(policy, seeds)).toBe(first >= 2 && seeds.length > first);
    }),
  );
});

test("a single witness can be the quorum; cosignatures by others do not count", () => {
  const policy = policyOf(`witness A ${witness(1)}\nwitness B ${witness(2)}\nquorum A\n`);
  expect(reached(policy, [1])).toBe(true);
  expect(reached(policy, [2])).toBe(false);
});

test("the quorum of nobody is always reached, and needs no witnesses", () => {
  expect(reachesQuorum(policyOf("quorum none\n"), new Set())).toBe(true);
});

test("white space, comments, a log after the quorum, and a missing last newline are let pass", () => {
  const text = `\n# comment\n \t#another\n\tquorum \t none \n\n  log\t${log(1)}  `;
  expect(policyOf(text).logs).toHaveLength(1);
});

test("names are opaque: other letters that look alike are other names", () => {
  const kelvin = `witness \u212a ${witness(1)}\nwitness K ${witness(2)}\nquorum \u212a\n`;
  expect(reached(policyOf(kelvin), [2])).toBe(false);
});

test("thirty-two logs, witnesses and groups are read", () => {
  const many = Array.from({ length: 32 }, (_, i) => i + 1);
  const rows = many.flatMap((seed) => [
    `log ${log(seed)}`,
    `witness W${seed} ${witness(seed)}`,
    `group G${seed} any W${seed}`,
  ]);
  const groups = many.map((seed) => `G${seed}`).join(" ");
  const policy = policyOf(
    [...rows, `group all-of-them 32 ${groups}`, "quorum all-of-them"].join("\n"),
  );
  expect(reached(policy, many)).toBe(true);
  expect(reached(policy, many.slice(1))).toBe(false);
});

describe("a policy is refused, with the line, for", () => {
  const A = `witness A ${witness(1)}\n`;
  const B = `witness B ${witness(2)}\n`;

  test.each([
    ["nothing", "", 2],
    ["no quorum", A, 3],
    ["two quorums", "quorum none\nquorum none\n", 2],
    ["a quorum not yet defined", `quorum A\n${A}`, 1],
    ["a quorum of two names", `${A}${B}quorum A B\n`, 3],
    ["another word", "trust me\n", 1],
    ["a carriage return", "quorum none\r\n", 1],
    ["a control character in a comment", "# \u0007\nquorum none\n", 1],
    ["DEL", "# \u007f\nquorum none\n", 1],
    ["no-break spaces", "quorum\u00a0none\n", 1],
    ["a log's key that is a witness's", `log ${witness(1)}\nquorum none\n`, 1],
    ["a witness's key that is a log's", `witness A ${log(1)}\nquorum none\n`, 1],
    ["a key that is none", `log log+00000000+AAAA\nquorum none\n`, 1],
    ["a log's key twice, under two names", `log ${log(1)}\nlog ${relabelled(1)}\n`, 2],
    ["a witness's key twice, under two names", `${A}witness B ${witness(1, "other")}\n`, 2],
    ["a name twice", `${A}witness A ${witness(2)}\n`, 2],
    ["a group of a witness's name", `${A}${B}group A any B\n`, 3],
    ["the name none", `witness none ${witness(1)}\n`, 1],
    ["none in a group", "group G any none\n", 1],
    ["an empty group", `${A}group G all\n`, 2],
    ["a group of itself", `${A}group G any A G\n`, 2],
    ["a member twice in one group", `${A}group G any A A\n`, 2],
    ["a member of two groups", `${A}group G any A\ngroup H any A\n`, 3],
    ["a threshold of 0", `${A}group G 0 A\n`, 2],
    ["a threshold above the members", `${A}group G 2 A\n`, 2],
    ["a threshold that is no number", `${A}group G 1x A\n`, 2],
    ["a threshold with a leading zero", `${A}group G 01 A\n`, 2],
    ["a log with more than an address", `log ${log(1)} https://a b\n`, 1],
    ["a witness with more than an address", `${A.trimEnd()} https://a b\n`, 1],
    ["a log without a key", "log\n", 1],
  ])("%s", (_, text, line) => {
    expect(parsePolicy(text)).toEqual({ line, problem: expect.any(String) });
  });

  function relabelled(seed: number): string {
    return formatVkey("another", testKey(seed).publicKey);
  }
});

test("no text makes the reader throw", () => {
  const words = fc.constantFrom(
    "log",
    "witness",
    "group",
    "quorum",
    "none",
    "any",
    "1",
    witness(1),
    log(1),
    "A",
  );
  const rows = fc.array(fc.oneof(words, fc.string({ unit: "binary" })), { maxLength: 6 });
  fc.assert(
    fc.property(fc.array(rows, { maxLength: 6 }), (lines) => {
      parsePolicy(lines.map((items) => items.join(" ")).join("\n"));
    }),
    { numRuns: 1000 },
  );
});
