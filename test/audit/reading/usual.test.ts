/** Patterns and schemas are held to each other: whatever a pattern takes, it reads as they do. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { type Found, readEntry } from "../../../audit/archive/block.ts";
import { sha256, verifyNow } from "../../../audit/native.ts";
import { readSigned } from "../../../audit/prefix/statement.ts";
import { packBundle, unpackBundle } from "../../../audit/reading/bundle.ts";
import { Keys } from "../../../audit/reading/keys.ts";
import { encodeBundle } from "../../../src/core/bundle.ts";
import { leafHash } from "../../../src/core/hash.ts";
import { canonical, type Json } from "../../../src/core/json.ts";
import { compact, headerSegment } from "../../../src/core/jws.ts";
import { TYP } from "../../../src/core/report.ts";
import { encodeBase64, encodeUtf8 } from "../../../src/core/text.ts";
import { agentOf, card, LOG_ID, line, TestLog } from "../log.ts";

const AGENT = agentOf(2);
const KEYS = new Keys();
KEYS.learn(AGENT.kid, AGENT.key.publicKey);
const TOOLS = { hash: sha256, keys: KEYS, verify: verifyNow };
const HEADER = headerSegment(AGENT.kid, TYP.report);

type Tree = { [name: string]: Json };

function usual(): { entry: Tree; report: Tree } {
  const log = new TestLog();
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  const { report } = log.report(agent);
  const { jws: _, ...body } = log.usage(agent);
  const prev = encodeBase64(log.head);
  const entry = { at: log.at, body, index: "4", kind: "usage", log: LOG_ID, prev, v: "1" };
  return { entry: { ...entry, body: { ...body, jws: "" } }, report: { ...report } as Tree };
}

const USUAL = usual();

const bytesOf = (entry: Tree, jws: string): Uint8Array =>
  encodeUtf8(canonical(put(entry, ["body", "jws"], jws)));
const signed = (payload: string): string => compact(HEADER, payload, (m) => AGENT.key.sign(m));

/** What pattern and schemas make of it; `usual` if the pattern took it. */
function bothWays(bytes: Uint8Array): { usual: boolean } {
  const packed = packBundle(encodeBundle([bytes]), TOOLS);
  const entry = readEntry(bytes);
  const text =
    typeof entry === "object" && entry.kind === "usage"
      ? ({ kind: "report", text: entry.body.jws } as const)
      : undefined;
  const said = text && readSigned(text, KEYS.byKid, TOOLS);
  const usual = packed.others[0] === undefined;
  const read = usual ? withoutJws(entry) : entry;
  const found = [{ entry: read, leaf: leafHash(bytes, sha256), said }];
  expect(unpackBundle(packed)).toEqual({ found, cut: false });
  return { usual };
}

/** The JWS of an entry that a pattern took stays behind: what it says is held to `said`. */
function withoutJws(entry: ReturnType<typeof readEntry>): Found["entry"] {
  if (entry === "malformed" || entry.kind !== "usage") throw new Error("no usage is usual");
  const { jws: _, ...body } = entry.body;
  return { ...entry, body };
}

function put(tree: Tree, [name = "", ...rest]: readonly string[], value: Json): Tree {
  const inner = rest.length === 0 ? value : put((tree[name] ?? {}) as Tree, rest, value);
  return { ...tree, [name]: inner };
}

/** Paths of all texts in it, and of members that may be there. */
function pathsOf(tree: Tree, ...optional: string[][]): string[][] {
  const paths = Object.entries(tree).flatMap(([name, value]) =>
    typeof value === "object" ? pathsOf(value as Tree).map((path) => [name, ...path]) : [[name]],
  );
  return [...paths, ...optional];
}

/** At the edges of every scalar's form, and just past them. */
const VALUES: readonly Json[] = [
  ...["", "0", "1", "00", "-1", "7", "999999999999999999", "1000000000000000000"],
  ...[
    "9223372036854775807",
    "9223372036854775808",
    "1/2",
    "0/1",
    "1/0",
    "0.5",
    "1.000000",
    "00.000000",
  ],
  ...["true", "hosted", "self_managed", "failure_reason", "dotcom", "a_9", "A", "x".repeat(64)],
  ...[
    "x".repeat(65),
    "x".repeat(255),
    "x".repeat(256),
    "é",
    "é".repeat(128),
    '"',
    "\\",
    "/",
    "<",
    "\n",
  ],
  ...[
    "\u007f",
    "\u0000",
    "\u2028",
    "😀",
    " ",
    "~",
    "2024-02-01",
    "2024-13-01",
    "0000-01-01",
    "2024-02-02",
  ],
  ...[
    "01-28",
    "01-29",
    "02-28",
    "02-29",
    "02-30",
    "04-30",
    "04-31",
    "12-31",
    "00-01",
    "13-01",
    "01-00",
  ].flatMap((day) => [`2023-${day}T00:00:00.000Z`, `2024-${day}T23:59:59.999Z`]),
  ...["0000-01-01T00:00:00.000Z", "2024-01-01T24:00:00.000Z", "2024-01-01T00:60:00.000Z"],
  ...["2024-01-01T00:00:60.000Z", "2024-01-01T00:00:00.00Z", "2024-01-01T00:00:00.000z"],
  ...[LOG_ID, LOG_ID.toUpperCase(), `${LOG_ID}0`, "A".repeat(43), `${"A".repeat(43)}=`],
  ...["B", "C", "E", "Q", "8", "-"].map((last) => `${"A".repeat(42)}${last}=`),
  true,
  false,
  [],
  {},
];
const value = fc.oneof(
  fc.constantFrom(...VALUES),
  fc.string({ unit: "grapheme", maxLength: 300 }),
  fc.bigInt({ min: 0n, max: 2n ** 65n }).map(String),
);
const character = fc.oneof(fc.constantFrom(...'"\\{}[]:,0123456789AZaz=-_.~/ é\n'), fc.string());

test("a usage entry and its report, as services write them, are taken by the patterns", () => {
  const jws = signed(canonical(USUAL.report));
  expect(bothWays(bytesOf(USUAL.entry, jws))).toEqual({ usual: true });
  for (const last of ["2024-01-31", "2024-02-28", "2024-04-30"]) {
    const entry = put(USUAL.entry, ["at"], `${last}T23:59:59.999Z`);
    expect(bothWays(bytesOf(entry, jws))).toEqual({ usual: true });
  }
  const held = put(USUAL.entry, ["body", "hold"], "3");
  expect(bothWays(bytesOf(held, jws))).toEqual({ usual: true });
  const machine = put(USUAL.report, ["runner", "machine_id"], "m");
  expect(bothWays(bytesOf(USUAL.entry, signed(canonical(machine))))).toEqual({ usual: true });
});

test("a member of an entry with any value is read as its schema reads it", () => {
  const paths = pathsOf(USUAL.entry, ["body", "hold"], ["body", "more"], ["more"], ["body", "__x"]);
  const jws = signed(canonical(USUAL.report));
  fc.assert(
    fc.property(fc.constantFrom(...paths), value, (path, changed) => {
      bothWays(encodeUtf8(canonical(put(put(USUAL.entry, ["body", "jws"], jws), path, changed))));
    }),
    { numRuns: 1_500 },
  );
});

test("a member of a report with any value is read as its schema reads it", () => {
  const paths = pathsOf(USUAL.report, ["runner", "machine_id"], ["more"], ["job", "more"]);
  fc.assert(
    fc.property(fc.constantFrom(...paths), value, (path, changed) => {
      const payload = canonical(put(USUAL.report, path, changed));
      bothWays(bytesOf(USUAL.entry, signed(payload)));
    }),
    { numRuns: 1_500 },
  );
});

test("a text that was edited anywhere, in entry or payload, is read as its schema reads it", () => {
  const payload = canonical(USUAL.report);
  const entry = canonical(put(USUAL.entry, ["body", "jws"], signed(payload)));
  const edit = fc.record({ at: fc.nat(entry.length), cut: fc.nat(3), text: character });
  const edited = (text: string, change: { at: number; cut: number; text: string }): string => {
    const at = change.at % (text.length + 1);
    return text.slice(0, at) + change.text + text.slice(at + change.cut);
  };
  fc.assert(
    fc.property(edit, (change) => {
      bothWays(encodeUtf8(edited(entry, change)));
      bothWays(bytesOf(USUAL.entry, signed(edited(payload, change))));
    }),
    { numRuns: 1_500 },
  );
});

test("a JWS that was edited anywhere is read as core reads it", () => {
  const jws = signed(canonical(USUAL.report));
  const other = compact(HEADER, canonical(USUAL.report), (m) => agentOf(3).key.sign(m));
  bothWays(bytesOf(USUAL.entry, other));
  fc.assert(
    fc.property(fc.nat(jws.length), fc.nat(2), character, (at, cut, text) => {
      bothWays(bytesOf(USUAL.entry, jws.slice(0, at) + text + jws.slice(at + cut)));
    }),
    { numRuns: 1_500 },
  );
  const long = put(USUAL.report, ["id"], "i".repeat(255));
  for (const executor of ["", "e".repeat(255)]) {
    bothWays(bytesOf(USUAL.entry, signed(canonical(put(long, ["runner", "executor"], executor)))));
  }
});
