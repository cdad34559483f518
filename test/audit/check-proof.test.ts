import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sha256 } from "../../audit/native.ts";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { cosign } from "../../src/core/cosignature.ts";
import { encodeEntry } from "../../src/core/entry.ts";
import { canonical } from "../../src/core/json.ts";
import { formatVkey, linesOf, noteOf } from "../../src/core/note.ts";
import { inclusionProof, leafNodes } from "../../src/core/proof.ts";
import { decodeUtf8, encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { formatTlogProof } from "../../src/core/tlog-proof.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, signer, vkeyText } from "./archive.ts";
import { command, type Ended, openHome } from "./command.ts";
import { honestLog } from "./honest.ts";
import { agentOf, card, LOG_ID, TestLog as Log, line, NOW, type TestLog } from "./log.ts";

const home = openHome();
afterAll(() => home.remove());
const { log } = honestLog();
const VKEY = ["--vkey", vkeyText()];
const WITNESS = { name: "north.test", ...testKey(40) };
const BAD_WITNESS = { ...WITNESS, sign: () => new Uint8Array(64).fill(1) };

const indexOf = (text: string, from: TestLog = log): number =>
  from.entries.findIndex((entry) => decodeUtf8(entry)?.includes(text));
const USAGE = indexOf('"kind":"usage"');
const KEY = indexOf('"kind":"key"');
const OTHER_KEY = log.entries.findLastIndex((e) => decodeUtf8(e)?.includes('"kind":"key"'));

interface Saying {
  from?: TestLog;
  size?: number;
  note?: string;
  extra?: Uint8Array | undefined;
}

let files = 0;
/** A file with the proof of an entry, or with what is said instead. */
function proofOf(
  index: number,
  { from = log, size = from.size, note, ...said }: Saying = {},
): string {
  const read = leafNodes(from.leaves.slice(0, size), sha256);
  const hashes = inclusionProof(BigInt(index), BigInt(size), read, sha256);
  const checkpoint = note ?? decodeUtf8(checkpointOf(from, size)) ?? "";
  const extra = "extra" in said ? said.extra : from.entries[index];
  const text = formatTlogProof({
    index: BigInt(index),
    hashes,
    checkpoint,
    ...(extra && { extra }),
  });
  return kept(text);
}

function kept(content: string | Uint8Array): string {
  const file = join(home.folder, `${files++}`);
  writeFileSync(file, content);
  return file;
}

async function check(file: string, ...args: string[]): Promise<Ended> {
  return await command("check-proof", file, ...VKEY, ...args);
}

/** Codes of what was found; the exit status goes with them. */
async function found(file: string, ...args: string[]): Promise<string[]> {
  const { exit, out } = await check(file, "--json", ...args);
  const document = JSON.parse(out);
  expect(exit).toBe(document.findings.length === 0 ? 0 : 1);
  return document.findings.map(({ code }: { code: string }) => code);
}

let usage = "";
let key = "";
beforeAll(() => {
  usage = proofOf(USAGE);
  key = proofOf(KEY, { size: KEY + 1 });
});

test("a build's proof is checked offline, and says what it was charged", async () => {
  const { err, exit, out } = await check(usage, "--key-proof", key);
  expect({ exit, err }).toEqual({ exit: 0, err: "" });
  expect(out).toContain(`entry ${USAGE}, usage`);
  expect(out).toContain("job 1 of project 10, namespace 1");
  expect(out).toContain("60001 ms × 1/1 = 60001.000000 compute-ms = 1.0000 compute minutes");
  expect(out).not.toContain("not verified");
});

test("a key's proof that cannot be looked at takes back nothing that was found", async () => {
  const stranger = checkpointOf(log, log.size, undefined, [signer(LOG_ID, testKey(9))]);
  const unseen = ["--key-proof", proofOf(KEY, { note: decodeUtf8(stranger) ?? "" })];
  expect((await check(usage, ...unseen)).exit).toBe(2);
  expect(await found(usage, ...unseen, "--namespace", "99")).toEqual(["proof-build"]);
});

test.each<[number, string[], object]>([
  [2, [], {}],
  [1, ["entry-swapped"], { index: "7" }],
  [1, ["entry-foreign"], { log: "0".repeat(32) }],
])("an entry of an unknown kind is held to its place: %i %j", async (status, codes, said) => {
  const from = new Log();
  const place = { index: "1", kind: "future_kind", log: LOG_ID, prev: encodeBase64(from.head) };
  from.put(encodeUtf8(canonical({ at: NOW, body: {}, v: "1", ...place, ...said })));
  const { exit, out } = await check(proofOf(1, { from }), "--json");
  expect([exit, JSON.parse(out).findings.length]).toEqual([status, codes.length]);
  expect(JSON.parse(out).findings.map(({ code }: { code: string }) => code)).toEqual(codes);
});

test("as JSON the same is said for machines", async () => {
  const { out } = await check(usage, "--json");
  expect(JSON.parse(out)).toMatchObject({
    exit: 0,
    log: LOG_ID,
    index: String(USAGE),
    kind: "usage",
    size: String(log.size),
    build: { job: "1", namespace: "1", charge: { compute_ms: "60001.000000", factor: "1/1" } },
    limits: [
      expect.stringContaining("key was retired"),
      expect.stringContaining("signature was not verified"),
    ],
    findings: [],
  });
});

test("what is held or in conflict is proven too, and costs nothing", async () => {
  for (const kind of ["hold", "conflict"]) {
    const { exit, out } = await check(proofOf(indexOf(`"kind":"${kind}"`)), "--key-proof", key);
    expect([exit, out]).toEqual([0, expect.stringContaining("not charged")]);
  }
});

test("any entry is proven, and one that is no build's says so", async () => {
  const { exit, out } = await check(proofOf(0));
  expect([exit, out]).toEqual([0, expect.stringContaining("no build's")]);
});

test.each([
  ["nothing", ""],
  ["no text", Uint8Array.of(0xff, 0xfe)],
  ["another text", "c2sp.org/tlog-proof@v2\nindex 0\n\n"],
])("a file that is %s is malformed", async (_, content) => {
  expect(await found(kept(content))).toEqual(["proof-malformed"]);
});

test("a proof without its entry proves nothing here", async () => {
  expect(await found(proofOf(USAGE, { extra: undefined }))).toEqual(["proof-malformed"]);
});

test("another entry, another index, another size or a cut proof does not lead to the root", async () => {
  const other = { extra: log.entries[0] };
  expect(await found(proofOf(USAGE, other))).toEqual(["proof-inclusion"]);
  const text = readFileSync(usage, "utf8");
  const moved = text.replace(`index ${USAGE}\n`, `index ${USAGE + 1}\n`);
  expect(await found(kept(moved))).toEqual(["proof-inclusion"]);
  const cut = text.replace(/(index \d+\n)[^\n]+\n/, "$1");
  expect(await found(kept(cut))).toEqual(["proof-inclusion"]);
  const older = decodeUtf8(checkpointOf(log, USAGE + 2)) ?? "";
  expect(await found(proofOf(USAGE, { note: older }))).toEqual(["proof-inclusion"]);
});

test("each hash of a proof counts: dropped, doubled, changed or moved, nothing is proven", async () => {
  const lines = readFileSync(usage, "utf8").split("\n");
  const first = lines.findIndex((row) => row.startsWith("index ")) + 1;
  const last = lines.indexOf("", first);
  expect(last - first).toBeGreaterThan(3);
  for (let at = first; at < last; at += 1) {
    const [hash = "", next = ""] = lines.slice(at, at + 2);
    const wrong = encodeBase64(sha256(encodeUtf8(hash)));
    for (const instead of [[], [hash, hash], [wrong], ...(next === "" ? [] : [[next, hash]])]) {
      const taken = instead[0] === next ? 2 : 1;
      const changed = lines.toSpliced(at, taken, ...instead).join("\n");
      expect([at, instead, await found(kept(changed))]).toEqual([at, instead, ["proof-inclusion"]]);
    }
  }
});

test("a proof that leads to a root which nobody has signed proves nothing", async () => {
  const text = readFileSync(usage, "utf8");
  const unsigned = text.slice(0, text.lastIndexOf("\n\n") + 2);
  expect(await found(kept(unsigned))).toEqual(["checkpoint-malformed"]);
});

test("changing any one letter of a proof never leaves it proven", async () => {
  const text = readFileSync(usage, "utf8");
  const checks = Array.from({ length: 120 }, (_, i) => Math.floor((i * text.length) / 120));
  for (const at of checks) {
    const letter = text[at] === "A" ? "B" : "A";
    const { exit } = await check(kept(text.slice(0, at) + letter + text.slice(at + 1)));
    expect([at, exit]).not.toEqual([at, 0]);
  }
});

test("a checkpoint's faults are distinct, and one by a stranger is no verdict", async () => {
  const note = decodeUtf8(checkpointOf(log, log.size)) ?? "";
  const forged = note.replace(/.{8}(.{6})\n$/, "AAAAAAAA$1\n");
  expect(await found(proofOf(USAGE, { note: forged }))).toEqual(["checkpoint-signature"]);
  const text = readFileSync(usage, "utf8");
  expect(await found(kept(`${text}x`))).toEqual(["checkpoint-malformed"]);
  const stranger = checkpointOf(log, log.size, undefined, [signer(LOG_ID, testKey(9))]);
  const by = await check(proofOf(USAGE, { note: decodeUtf8(stranger) ?? "" }));
  expect(by).toMatchObject({ exit: 2, err: expect.stringContaining("not signed by a given key") });
  expect((await command("check-proof", usage)).exit).toBe(2);
  expect((await check(join(home.folder, "nowhere"))).exit).toBe(2);
});

test("an entry that says another index or another log than it stands in is found", async () => {
  const odd = new Log();
  odd.put(odd.entries[0] ?? new Uint8Array());
  expect(await found(proofOf(1, { from: odd }))).toEqual(["entry-swapped"]);
  odd.put(encodeUtf8("{}"));
  expect(await found(proofOf(2, { from: odd }))).toEqual(["entry-malformed"]);
  const foreign = new Log("ab".repeat(16));
  const host = new Log();
  host.entries.length = 0;
  host.leaves.length = 0;
  host.put(foreign.entries[0] ?? new Uint8Array());
  expect(await found(proofOf(0, { from: host }))).toEqual(["entry-foreign"]);
});

test("an entry of a later version's kind is in the log, and is not judged", async () => {
  const later = new Log();
  const text = decodeUtf8(later.entries[0] ?? new Uint8Array()) ?? "";
  later.entries.length = 0;
  later.leaves.length = 0;
  later.put(encodeUtf8(text.replace('"kind":"log"', '"kind":"later"')));
  const { exit, out } = await check(proofOf(0, { from: later }));
  expect([exit, out]).toEqual([2, expect.stringContaining("unknown-kind")]);
});

test("enough witnesses of the policy must have cosigned the proof's own checkpoint", async () => {
  const own = formatVkey(WITNESS.name, WITNESS.publicKey, "cosignature");
  const policy = kept(`log ${vkeyText()}\nwitness north ${own}\nquorum north\n`);
  expect(await found(usage, "--policy", policy)).toEqual(["quorum-missing"]);
  const { lines, text } = linesOf(decodeUtf8(checkpointOf(log, log.size)) ?? "") ?? {
    lines: [],
    text: "",
  };
  expect(parseCheckpoint(text)?.size).toBe(BigInt(log.size));
  const signed = (witness: typeof WITNESS): string =>
    noteOf(text, [...lines.map((row) => row.line), cosign(witness, text, 1_764_432_000n)]);
  const good = proofOf(USAGE, { note: signed(WITNESS) });
  const { out } = await check(good, "--policy", policy);
  expect(out).toContain("cosigned by north at 2025-11-29T16:00:00.000Z");
  expect(await found(good, "--policy", policy)).toEqual([]);
  const bad = proofOf(USAGE, { note: signed(BAD_WITNESS) });
  expect(await found(bad, "--policy", policy)).toEqual(["cosignature-signature", "quorum-missing"]);
});

test("the runner's signature holds only under the key that its proof names", async () => {
  expect(await found(usage, "--key-proof", key)).toEqual([]);
  expect(await found(usage, "--key-proof", proofOf(OTHER_KEY))).toEqual(["proof-key"]);
  expect(await found(usage, "--key-proof", usage)).toEqual(["proof-key"]);
  expect(await found(usage, "--key-proof", kept("none"))).toEqual(["proof-key"]);
});

test("a report that its key has not signed is found, however honest the log's tree is", async () => {
  const forged = new Log();
  forged.write("rate_card", card());
  const agent = forged.enrol(2, [line("runner-a")]);
  const body = forged.usage({ ...agent, key: agentOf(7).key });
  forged.force("usage", body);
  const ours = proofOf(3, { from: forged });
  const at = forged.size - 1;
  expect(await found(proofOf(at, { from: forged }), "--key-proof", ours)).toEqual([
    "jws-signature",
  ]);
  expect(await found(proofOf(at, { from: forged }))).toEqual([]);
});

test("a charge that is not duration times factor is found", async () => {
  const dear = new Log();
  dear.write("rate_card", card());
  const agent = dear.enrol(2, [line("runner-a")]);
  const body = { ...dear.usage(agent), compute_ms: "60000.000001" };
  dear.put(
    encodeEntry({ at: dear.at, body, index: 4n, kind: "usage", log: dear.id, prev: dear.head }),
  );
  expect(await found(proofOf(4, { from: dear }))).toEqual(["proof-charge"]);
});

test("a proof that is shown for another build is found", async () => {
  expect(await found(usage, "--namespace", "1")).toEqual([]);
  expect(await found(usage, "--namespace", "2")).toEqual(["proof-build"]);
  const report = { job: { id: "1", project_id: "10", root_namespace_id: "1" } };
  const rating = { duration_ms: "60001", factor: "1/1", compute_ms: "60001.000000" };
  const answer = { log: LOG_ID, usages: [{ index: String(USAGE), report, rating }] };
  const job = (said: object): string[] => ["--job", kept(JSON.stringify(said))];
  expect(await found(usage, ...job(answer))).toEqual([]);
  const cheaper = { ...rating, compute_ms: "1.000000" };
  const usages = [{ index: String(USAGE), report, rating: cheaper }];
  expect(await found(usage, ...job({ ...answer, usages }))).toEqual(["proof-build"]);
  const elsewhere = [{ index: "9", report, rating }];
  expect(await found(usage, ...job({ ...answer, usages: elsewhere }))).toEqual(["proof-build"]);
  expect((await check(usage, ...job({}))).exit).toBe(2);
  expect((await check(usage, "--job", kept("{"))).exit).toBe(2);
});
