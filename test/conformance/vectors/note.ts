/** Signed notes and checkpoint texts. */
import { parseCheckpoint } from "../../../src/core/checkpoint.ts";
import { verifyByPoints } from "../../../src/core/ed25519.ts";
import { leafHash } from "../../../src/core/hash.ts";
import { openNote, parseVkey, signNote, type Vkey } from "../../../src/core/note.ts";
import { decodeBase64, decodeUtf8, encodeUtf8, equal } from "../../../src/core/text.ts";
import { testKey } from "../../signing.ts";
import { readJson, type Vector, vector } from "../vector.ts";

interface SignedNotes {
  keys: { name: string; vkey: string; ed25519_seed_base64?: string }[];
  vkeys_reject: string[];
  sign: { key: string; text: string; want: string }[];
  open: { desc: string; known: string[]; msg: string; want: { verified?: string[] } }[];
  malformed: { desc: string; msg?: string; msg_base64?: string }[];
}

interface CheckpointTexts {
  vectors: { desc: string; text: string; spec_ok: boolean }[];
  sumdb_tree: { text: string; size: string };
}

export function* noteVectors(folder: string): Generator<Vector> {
  const notes = readJson<SignedNotes>(folder, "note/signed_note.json");
  yield* verificationKeys(notes);
  yield* signing(notes);
  yield* opening(notes);
  yield* checkpointTexts(readJson<CheckpointTexts>(folder, "note/checkpoint_parse.json"));
}

function* verificationKeys({ keys, vkeys_reject }: SignedNotes): Generator<Vector> {
  for (const { name, vkey } of keys) {
    yield vector(`vkey of ${name}`, parseVkey(vkey)?.name === name);
    const spoilt = Array.from(vkey, (letter, i) => [
      vkey.slice(0, i),
      vkey.slice(i + 1),
      vkey.slice(0, i) + String.fromCharCode(letter.charCodeAt(0) + 1) + vkey.slice(i + 1),
    ]).flat();
    const taken = spoilt.filter((text) => parseVkey(text) !== undefined);
    yield vector(`vkey of ${name}, cut or incremented`, taken.length === 0, taken.join(" "));
  }
  // The last of the list is the file's own remark about the texts that are spoilt above.
  for (const text of vkeys_reject.filter((candidate) => !candidate.startsWith("("))) {
    yield vector(`vkey refused: ${text}`, parseVkey(text) === undefined);
  }
}

function* signing({ keys, sign }: SignedNotes): Generator<Vector> {
  for (const { key: name, text, want } of sign) {
    const seed = decodeBase64(keys.find((key) => key.name === name)?.ed25519_seed_base64 ?? "");
    const key = testKey(seed ?? new Uint8Array(32));
    const note = signNote(text, [{ name, publicKey: key.publicKey, sign: key.sign }]);
    yield vector(`note signed by ${name}`, note === want, note);
  }
}

function* opening({ keys, open, malformed }: SignedNotes): Generator<Vector> {
  const vkeys = keys.map(({ vkey }) => parseVkey(vkey)).filter((vkey) => vkey !== undefined);
  for (const { desc, known, msg, want } of open) {
    const trusted = vkeys.filter(({ name }) => known.includes(name));
    const opened = openNote(msg, trusted, verifyByPoints);
    const verified = "verified" in opened ? opened.verified : undefined;
    const same = JSON.stringify(verified) === JSON.stringify(want.verified);
    yield vector(`note opened: ${desc}`, same, JSON.stringify(opened));
  }
  for (const { desc, msg, msg_base64 } of malformed) {
    const text = msg ?? decodeUtf8(decodeBase64(msg_base64 ?? "") ?? new Uint8Array());
    yield vector(`note refused: ${desc}`, text === undefined || isMalformed(text, vkeys));
  }
}

function isMalformed(note: string, vkeys: readonly Vkey[]): boolean {
  const opened = openNote(note, vkeys, verifyByPoints);
  return "problem" in opened && opened.problem === "malformed";
}

function* checkpointTexts({ vectors, sumdb_tree }: CheckpointTexts): Generator<Vector> {
  for (const { desc, text, spec_ok } of vectors) {
    yield vector(`checkpoint: ${desc}`, (parseCheckpoint(text) !== undefined) === spec_ok);
  }
  const sumdb = parseCheckpoint(sumdb_tree.text);
  const root = leafHash(encodeUtf8("hello world"));
  const same = sumdb !== undefined && equal(sumdb.root, root);
  yield vector("checkpoint: sumdb tree", same && String(sumdb.size) === sumdb_tree.size);
}
