import fc from "fast-check";
import { expect, test } from "vitest";
import {
  formatVkey,
  linesOf,
  noteOf,
  openNote,
  parseVkey,
  type Signer,
  signNote,
  type Vkey,
} from "../../src/core/note.ts";
import { signatureLine } from "../../src/core/signature-line.ts";
import { concat, decodeBase64, encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { type TestKey, testKey, verifyByOpenssl } from "../signing.ts";

const TEXT = "log.example\n3\n\nan empty line above, one below\n\n";

function signer(name: string, key: TestKey): Signer {
  return { name, publicKey: key.publicKey, sign: key.sign };
}

function vkey(name: string, key: TestKey): Vkey {
  const known = parseVkey(formatVkey(name, key.publicKey));
  if (known === undefined) throw new Error("the test's own vkey does not parse");
  return known;
}

const A = signer("log.example/a", testKey(1));
const B = signer("witness+less", testKey(2));
const C = signer("witness.example", testKey(3));
const VKEY_A = vkey("log.example/a", testKey(1));
const VKEY_C = vkey("witness.example", testKey(3));
const NOTE = signNote(TEXT, [A, C]);
const [LINE_A = "", LINE_C = ""] = NOTE.slice(TEXT.length + 1).split(/(?<=\n)/);

const open = (note: string, vkeys: readonly Vkey[]) => openNote(note, vkeys, verifyByOpenssl);

test("a note opens to its text and the names of known keys that signed it, in its order", () => {
  const signatures = [{ vkey: VKEY_A }, { vkey: VKEY_C }];
  const opened = { text: TEXT, verified: [A.name, C.name], signatures };
  expect(open(NOTE, [VKEY_C, VKEY_A])).toEqual(opened);
});

test("unknown keys are ignored, also when they have a known one's name", () => {
  const other = signer(A.name, testKey(4));
  expect(open(signNote(TEXT, [other, C]), [VKEY_C, VKEY_A])).toMatchObject({ verified: [C.name] });
  expect(open(NOTE, [])).toEqual({ problem: "unknown-key" });
  expect(open(signNote(TEXT, [other]), [VKEY_A])).toEqual({ problem: "unknown-key" });
});

test("one known key whose signature fails refuses the note, whoever else signed", () => {
  const forged = { ...C, sign: A.sign };
  expect(open(signNote(TEXT, [A, forged]), [VKEY_A, VKEY_C])).toEqual({ problem: "bad-signature" });
  const short = { ...C, sign: (text: Uint8Array) => C.sign(text).slice(1) };
  expect(open(signNote(TEXT, [A, short]), [VKEY_A, VKEY_C])).toEqual({ problem: "bad-signature" });
});

test("a known key signs once", () => {
  expect(open(`${NOTE}${LINE_A}`, [VKEY_A])).toEqual({ problem: "malformed" });
  expect(open(`${NOTE}${LINE_A}`, [VKEY_C])).toMatchObject({ verified: [C.name] });
});

test("a hundred signatures are read, one more is refused", () => {
  const strangers = Array.from({ length: 99 }, (_, i) => ({ ...C, name: `stranger-${i}` }));
  expect(open(signNote(TEXT, [...strangers, A]), [VKEY_A])).toMatchObject({ verified: [A.name] });
  const crowd = `${signNote(TEXT, [...strangers, C])}${LINE_A}`;
  expect(open(crowd, [VKEY_A])).toEqual({ problem: "malformed" });
  expect(linesOf(crowd)).toBeUndefined();
});

test("no changed character leaves a note that opens to another text", () => {
  const letters = fc.constantFrom(..."aA0+/= \n\u2014\u0000\ud800");
  fc.assert(
    fc.property(fc.nat(NOTE.length), letters, fc.boolean(), (at, letter, replace) => {
      const changed = NOTE.slice(0, at) + letter + NOTE.slice(replace ? at + 1 : at);
      const opened = open(changed, [VKEY_A, VKEY_C]);
      if ("text" in opened) expect(opened.text).toBe(TEXT);
    }),
    { numRuns: 1000 },
  );
});

test.each([
  ["only text", TEXT],
  ["no signatures", `${TEXT}\n`],
  ["no last line break", NOTE.slice(0, -1)],
  ["a line after the signatures", `${NOTE}more\n`],
  ["an empty line after the signatures", `${NOTE}\n`],
  ["a control character", `\u0001${NOTE}`],
  ["a carriage return", NOTE.replace("\n", "\r\n")],
  ["a lone surrogate", `\udc00${NOTE}`],
  ["a hyphen for the dash", NOTE.replace("\u2014 ", "- ")],
  ["a space in a name", NOTE.replace(A.name, "log a")],
  ["a next-line character in a name", NOTE.replace(A.name, "log\u0085a")],
  ["a plus in a name", NOTE.replace(A.name, "log+a")],
  ["no name", NOTE.replace(` ${A.name}`, "")],
  ["two spaces", NOTE.replace(`${A.name} `, `${A.name}  `)],
  ["a signature without padding", `${TEXT}\n${LINE_C.replace("=\n", "\n")}`],
  ["a key id alone", `${TEXT}\n\u2014 ${A.name} ${encodeBase64(new Uint8Array(4))}\n`],
])("%s makes it no note", (_, note) => {
  expect(note).not.toBe(NOTE);
  expect(open(note, [VKEY_A, VKEY_C])).toEqual({ problem: "malformed" });
});

test("a note is its text and its lines, put together and taken apart again", () => {
  const parts = linesOf(NOTE);
  expect(parts?.text).toBe(TEXT);
  expect(parts?.lines).toMatchObject([
    { name: A.name, id: VKEY_A.id, line: LINE_A },
    { name: C.name, id: VKEY_C.id, line: LINE_C },
  ]);
  expect(noteOf(TEXT, [LINE_A, LINE_C])).toBe(NOTE);
  expect(signatureLine(A.name, A.publicKey, A.sign(encodeUtf8(TEXT)))).toBe(LINE_A);
});

test.each([
  ["no line", TEXT, []],
  ["a line without its newline", TEXT, [LINE_A.slice(0, -1)]],
  ["two lines for one", TEXT, [LINE_A + LINE_C]],
  ["a line that is none", TEXT, ["no signature\n"]],
  ["a text without its newline", TEXT.trimEnd(), [LINE_A]],
  ["a line that hides more text", TEXT, [`more\n\n${LINE_A}`]],
])("a note of %s is not written", (_, text, lines) => {
  expect(() => noteOf(text, lines)).toThrow("note:");
});

test("what could not be opened is not signed", () => {
  expect(() => signNote("no line break", [A])).toThrow("note:");
  expect(() => signNote("", [A])).toThrow("note:");
  expect(() => signNote("tab\t\n", [A])).toThrow("note:");
  expect(() => signNote("\ud800\n", [A])).toThrow("note:");
  expect(() => signNote(TEXT, [])).toThrow("note:");
  expect(() => signNote(TEXT, [B])).toThrow("note:");
  expect(() => formatVkey("a b", testKey(1).publicKey)).toThrow("note:");
});

test("a signature is over the text alone, with its last line break", () => {
  const data = decodeBase64(LINE_A.split(" ")[2]?.trim() ?? "") ?? new Uint8Array();
  expect(data.subarray(4)).toEqual(A.sign(encodeUtf8(TEXT)));
});

test("a verification key is refused after any change of one character", () => {
  const text = formatVkey(A.name, A.publicKey);
  for (let at = 0; at < text.length; at++) {
    const next = String.fromCharCode(text.charCodeAt(at) + 1);
    expect(parseVkey(text.slice(0, at) + next + text.slice(at + 1))).toBeUndefined();
    expect(parseVkey(text.slice(0, at))).toBeUndefined();
  }
});

test.each([
  ["nothing", ""],
  ["another type", retyped(2)],
  ["a cosignature's type under another's id", retyped(4)],
  ["no key", "log+00000000+AQ=="],
  ["an ill-formed name", `\ud800${formatVkey(A.name, A.publicKey)}`],
  ["a key of small order", formatVkey("log", new Uint8Array(32))],
  ["a key of 31 bytes", formatVkey("log", A.publicKey.slice(1))],
])("%s is no verification key here", (_, text) => {
  expect(parseVkey(text)).toBeUndefined();
});

function retyped(type: number): string {
  const [name, id] = formatVkey(A.name, A.publicKey).split("+");
  return `${name}+${id}+${encodeBase64(concat(Uint8Array.of(type), A.publicKey))}`;
}
