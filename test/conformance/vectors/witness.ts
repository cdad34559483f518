/** C2SP tlog-cosignature and tlog-witness. */
import { type Checkpoint, parseCheckpoint } from "../../../src/core/checkpoint.ts";
import { cosign, readCosignature } from "../../../src/core/cosignature.ts";
import { verifyByPoints } from "../../../src/core/ed25519.ts";
import { sha256 } from "../../../src/core/hash.ts";
import {
  formatVkey,
  linesOf,
  noteOf,
  openNote,
  parseVkey,
  type Vkey,
} from "../../../src/core/note.ts";
import { readSignatureLine } from "../../../src/core/signature-line.ts";
import { decodeHex, encodeHex, encodeUtf8 } from "../../../src/core/text.ts";
import {
  type AddCheckpointAnswer,
  formatAddCheckpoint,
  judgeAddCheckpoint,
  parseAddCheckpoint,
} from "../../../src/core/witness.ts";
import { testKey } from "../../signing.ts";
import { readJson, type Vector, vector } from "../vector.ts";

interface Cosignatures {
  vectors: {
    desc: string;
    vkey: string;
    note: string;
    origin_hash_hex: string;
    timestamp?: number;
  }[];
  timestamp_extraction: { sig_base64: string; unix?: number }[];
  vkeys_accept: string[];
  vkeys_reject: string[];
}

interface Sequence {
  origin: string;
  cases: { request_body: string; status: number; spec_status?: number; assert?: string }[];
}

interface Growth {
  vkey: string;
  checkpoint_5: string;
  checkpoint_8: string;
  consistency_proof_hex: string[];
}

const WITNESS = { name: "example.com/witness", ...testKey(7) };
const WITNESS_VKEY = formatVkey(WITNESS.name, WITNESS.publicKey, "cosignature");
const TIME = 1_764_432_000n;

export function* witnessVectors(folder: string): Generator<Vector> {
  yield* cosignatures(readJson<Cosignatures>(folder, "note/cosignature_v1.json"));
  const sigsum = readJson<Sequence & { log_public_key_hex: string }>(
    folder,
    "witness/add_checkpoint_sequence.json",
  );
  const key = decodeHex(sigsum.log_public_key_hex) ?? new Uint8Array();
  yield* sequence("sigsum", sigsum, formatVkey(sigsum.origin, key));
  const sumdb = readJson<Sequence & { vkey: string }>(folder, "witness/add_checkpoint_sumdb.json");
  yield* sequence("sumdb", sumdb, sumdb.vkey);
  yield* growth(readJson<Growth>(folder, "witness/consistency_5_to_8.json"));
}

function* cosignatures(published: Cosignatures): Generator<Vector> {
  for (const { desc, vkey, note, origin_hash_hex, timestamp } of published.vectors) {
    const opened = openNote(note, keys(vkey), verifyByPoints);
    const found = "problem" in opened ? [] : opened.signatures;
    const [signature, ...others] = found;
    // The second vector does not say its time, and was made in the same second.
    const { time } = signature ?? {};
    const same = time === BigInt(timestamp ?? 1_767_139_200) && others.length === 0;
    yield vector(`cosignature: ${desc}`, same, String(time));
    const origin = parseCheckpoint(linesOf(note)?.text ?? "")?.origin ?? "";
    const hash = encodeHex(sha256(encodeUtf8(origin)));
    yield vector(`cosignature: origin's hash of ${desc}`, hash === origin_hash_hex, hash);
  }
  for (const { sig_base64, unix } of published.timestamp_extraction) {
    const line = readSignatureLine(`\u2014 witness ${sig_base64}`);
    const time = line && readCosignature(line.signature)?.time;
    const expected = unix === undefined ? undefined : BigInt(unix);
    yield vector(`cosignature time: ${unix ?? "none"}`, line !== undefined && time === expected);
  }
  for (const text of published.vkeys_accept) {
    yield vector(`vkey accepted: ${text}`, parseVkey(text) !== undefined);
  }
  for (const text of published.vkeys_reject) {
    yield vector(`vkey refused: ${text}`, parseVkey(text) === undefined);
  }
}

/** One witness that keeps what it cosigned, from request to request. */
function* sequence(name: string, { origin, cases }: Sequence, vkey: string): Generator<Vector> {
  let last: Checkpoint | undefined;
  for (const [at, { request_body, status, spec_status, assert }] of cases.entries()) {
    const request = parseAddCheckpoint(request_body);
    const title = `witness ${name} ${at + 1}`;
    if (request === undefined) {
      yield vector(title, false, "no request");
      continue;
    }
    const written = formatAddCheckpoint(request);
    yield vector(`${title} is written again`, written === request_body, written);
    const answer = judgeAddCheckpoint(request, {
      vkeysOf: (asked) => (asked === origin ? keys(vkey) : undefined),
      last: () => last,
      verify: verifyByPoints,
    });
    const found = `${answer.status} ${bodyOf(answer)}`;
    yield vector(title, answer.status === (spec_status ?? status), found);
    if (answer.status === 200) {
      last = answer.checkpoint;
      const opened = openNote(
        noteOf(answer.text, [bodyOf(answer)]),
        keys(WITNESS_VKEY),
        verifyByPoints,
      );
      const held = "signatures" in opened && opened.signatures[0]?.time === TIME;
      yield vector(`${title} is cosigned`, held);
    }
    if (answer.status === 409) {
      yield vector(
        `${title} says its size`,
        assert === `body == ${JSON.stringify(bodyOf(answer))}`,
      );
    }
  }
}

function bodyOf(answer: AddCheckpointAnswer): string {
  if (answer.status === 200) return cosign(WITNESS, answer.text, TIME);
  return answer.status === 409 ? `${answer.size}\n` : `${answer.problem}\n`;
}

function* growth(published: Growth): Generator<Vector> {
  const { vkey, checkpoint_5, checkpoint_8, consistency_proof_hex } = published;
  const known = parseCheckpoint(linesOf(checkpoint_5)?.text ?? "");
  const hashes = consistency_proof_hex.map((hex) => decodeHex(hex) ?? new Uint8Array());
  const judged = (proof: Uint8Array[], checkpoint: string): number =>
    judgeAddCheckpoint(
      { old: 5n, proof, checkpoint },
      { vkeysOf: () => keys(vkey), last: () => known, verify: verifyByPoints },
    ).status;
  yield vector("consistency 5 to 8", judged(hashes, checkpoint_8) === 200);
  yield vector("consistency 5 to 5", judged([], checkpoint_5) === 200);
  yield vector("consistency 5 to 8, cut", judged(hashes.slice(1), checkpoint_8) === 422);
}

function keys(vkey: string): Vkey[] {
  const known = parseVkey(vkey);
  return known === undefined ? [] : [known];
}
