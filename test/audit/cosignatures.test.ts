import { expect, test } from "vitest";
import { exitOf, printResult } from "../../audit/print.ts";
import type { AuditResult } from "../../audit/verify.ts";
import { cosign } from "../../src/core/cosignature.ts";
import { formatVkey, linesOf } from "../../src/core/note.ts";
import { type Policy, parsePolicy } from "../../src/core/policy.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/core/text.ts";
import { type TestKey, testKey } from "../signing.ts";
import { auditFiles, checkpointOf, type Files, filesOf, said } from "./archive.ts";
import { smallLog } from "./honest.ts";

const log = smallLog();
const SIZE = log.size;
const TIME = 1_764_000_000n;
const A = testKey(71);
const B = testKey(72);

function vkeyOf(name: string, { publicKey }: TestKey): string {
  return formatVkey(name, publicKey, "cosignature");
}

const WITNESSES = `witness a ${vkeyOf("a.example", A)}\nwitness b ${vkeyOf("b.example", B)}\n`;
const ANY = policy(`${WITNESSES}group all any a b\nquorum all\n`);
const BOTH = policy(`${WITNESSES}group all all a b\nquorum all\n`);

function policy(text: string): Policy {
  const parsed = parsePolicy(text);
  if ("problem" in parsed) throw new Error(parsed.problem);
  return parsed;
}

function noteOf(size: number): { text: string; note: string } {
  const note = decodeUtf8(checkpointOf(log, size)) ?? "";
  return { note, text: linesOf(note)?.text ?? "" };
}

function line(name: string, key: TestKey, size = SIZE): string {
  const signer = { name, publicKey: key.publicKey, sign: (m: Uint8Array) => key.sign(m) };
  return cosign(signer, noteOf(size).text, TIME);
}

function idOf(name: string, key: TestKey): string {
  return vkeyOf(name, key).split("+")[1] ?? "";
}

/** Lines appended to the checkpoint of a size. */
function inNote(size: number, ...lines: string[]): Files {
  const files = filesOf(log, [5, SIZE]);
  return files.set(`checkpoint/${size}`, encodeUtf8(noteOf(size).note + lines.join("")));
}

function inFile(name: string, key: TestKey, text: string, size = SIZE): Files {
  const files = filesOf(log, [5, SIZE]);
  return files.set(`cosignature/${size}/${idOf(name, key)}`, encodeUtf8(text));
}

async function audited(files: Files, asked: Policy, live = false): Promise<AuditResult> {
  return await auditFiles(files, { policy: asked, live });
}

test("cosignatures count in the note and in files of their own, and their times are told", async () => {
  const split = inNote(SIZE, line("a.example", A));
  split.set(`cosignature/${SIZE}/${idOf("b.example", B)}`, encodeUtf8(line("b.example", B)));
  for (const files of [inNote(SIZE, line("a.example", A), line("b.example", B)), split]) {
    const result = await audited(files, BOTH);
    expect(result.findings.listed).toEqual([]);
    expect(exitOf(result)).toBe(0);
    expect(result.witnessed).toEqual({
      size: BigInt(SIZE),
      by: [
        { name: "a", time: TIME },
        { name: "b", time: TIME },
      ],
      quorum: true,
    });
    expect(printResult(result)).toContain("cosigned by a at 2025-11-24T16:00:00.000Z");
    expect(result.strangers.count).toBe(0);
  }
});

test("without a policy cosignatures are not looked at, and strangers' never", async () => {
  const stranger = line("c.example", testKey(73));
  const bad = inNote(SIZE, line("a.example", A, 5));
  expect(exitOf(await auditFiles(bad))).toBe(0);
  expect(exitOf(await audited(inNote(SIZE, stranger, line("a.example", A)), ANY))).toBe(0);
});

test("a quorum that no checkpoint reaches is found", async () => {
  const files = inNote(SIZE, line("a.example", A));
  const result = await audited(files, BOTH);
  expect([exitOf(result), said(result).codes]).toEqual([1, ["quorum-missing"]]);
  expect(said(await audited(filesOf(log), ANY)).codes).toEqual(["quorum-missing"]);
});

test("entries past the newest cosigned checkpoint are open, unless the log is being written", async () => {
  const files = inNote(5, line("a.example", A, 5));
  const result = await audited(files, ANY);
  expect([exitOf(result), result.witnessed?.size]).toEqual([2, 5n]);
  expect(result.open.first).toMatchObject({ code: "unwitnessed", index: 5n });
  expect(exitOf(await audited(files, ANY, true))).toBe(0);
});

test("a known witness's bad cosignature is found, wherever it stands", async () => {
  const good = line("b.example", B);
  const ofOther = line("a.example", A, 5);
  const forged = line("a.example", A).replace(/.{8}\n$/, "AAAAAAA=\n");
  const lines = [ofOther, forged, line("a.example", A).slice(0, 60)];
  for (const wrong of [ofOther, forged]) {
    const result = await audited(inNote(SIZE, wrong, good), ANY);
    expect(said(result).codes).toEqual(["cosignature-signature"]);
    expect(result.findings.first?.path).toBe(`checkpoint/${SIZE}`);
  }
  for (const wrong of [...lines, "", "no line\n", "\u2014 a.example AAAA\n", good]) {
    const files = inFile("a.example", A, wrong);
    files.set(`cosignature/${SIZE}/${idOf("b.example", B)}`, encodeUtf8(good));
    const result = await audited(files, ANY);
    expect(said(result).codes, wrong).toEqual(["cosignature-signature"]);
    expect(result.findings.first?.path).toBe(`cosignature/${SIZE}/${idOf("a.example", A)}`);
  }
});

test("a cosignature from the future does not count, and is said to be passed over", async () => {
  const files = inNote(SIZE, line("a.example", A), line("b.example", B));
  const at = (now: bigint): Promise<AuditResult> => auditFiles(files, { policy: ANY, now });
  expect([exitOf(await at(TIME - 300n)), (await at(TIME - 300n)).limits]).toEqual([0, []]);
  const early = await at(TIME - 301n);
  expect([exitOf(early), said(early).codes]).toEqual([1, ["quorum-missing"]]);
  expect(printResult(early)).toContain("a cosignature by a is from the future");
  expect(early.limits).toHaveLength(2);
});

test("one witness counts once, and does not speak for the log", async () => {
  const twice = inFile("a.example", A, `${line("a.example", A)}${line("a.example", A)}`);
  expect(said(await audited(twice, BOTH)).codes).toEqual(["quorum-missing"]);
  const name = `test/${log.id}`;
  const text = noteOf(SIZE).text;
  const files = filesOf(log, [5, SIZE]);
  const posing = cosign({ name, publicKey: A.publicKey, sign: (m) => A.sign(m) }, text, TIME);
  files.set(`checkpoint/${SIZE}`, encodeUtf8(`${text}\n${posing}`));
  const result = await audited(files, policy(`witness a ${vkeyOf(name, A)}\nquorum a\n`));
  expect(said(result).codes).toContain("checkpoint-untrusted");
  expect(result.size).toBe(5n);
});

test("a note with more signatures than anybody needs is refused, and sixteen are not", async () => {
  const many = (count: number): string[] =>
    Array.from({ length: count }, (_, i) => line(`w${i}.example`, testKey(80 + (i % 8))));
  expect(exitOf(await audited(inNote(SIZE, ...many(16), line("a.example", A)), ANY))).toBe(0);
  const flooded = await audited(inNote(SIZE, ...many(100)), ANY);
  expect(said(flooded).codes).toContain("checkpoint-malformed");
});
