import fc from "fast-check";
import { expect, test } from "vitest";
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import { cosign, cosignatureMessage, isFuture } from "../../src/core/cosignature.ts";
import { EMPTY_ROOT } from "../../src/core/hash.ts";
import {
  formatVkey,
  noteOf,
  type OpenedNote,
  openNote,
  parseVkey,
  signNote,
  type Vkey,
} from "../../src/core/note.ts";
import { signatureLine } from "../../src/core/signature-line.ts";
import { concat, decodeUtf8 } from "../../src/core/text.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";

const TEXT = formatCheckpoint({ origin: "log.example", size: 3n, root: EMPTY_ROOT });
const LOG = { name: "log.example", ...testKey(1) };
const WITNESS = { name: "witness.example", ...testKey(2) };
const TIME = 1_764_432_000n;

function vkey(name: string, publicKey: Uint8Array, type: Vkey["type"]): Vkey {
  const known = parseVkey(formatVkey(name, publicKey, type));
  if (known === undefined) throw new Error("the test's own vkey does not parse");
  return known;
}

const LOG_VKEY = vkey(LOG.name, LOG.publicKey, "ed25519");
const WITNESS_VKEY = vkey(WITNESS.name, WITNESS.publicKey, "cosignature");

function open(lines: readonly string[], vkeys: readonly Vkey[]): OpenedNote {
  const [own = ""] = signNote(TEXT, [LOG]).split("\n\n").slice(1);
  return openNote(noteOf(TEXT, [own, ...lines]), vkeys, verifyByOpenssl);
}

test("a cosignature opens with its witness and its time, beside the log's own signature", () => {
  const opened = open([cosign(WITNESS, TEXT, TIME)], [LOG_VKEY, WITNESS_VKEY]);
  const signatures = [{ vkey: LOG_VKEY }, { vkey: WITNESS_VKEY, time: TIME }];
  expect(opened).toEqual({ text: TEXT, verified: [LOG.name], signatures });
});

test("the message is two lines and the checkpoint's text", () => {
  expect(decodeUtf8(cosignatureMessage(TEXT, TIME))).toBe(`cosignature/v1\ntime ${TIME}\n${TEXT}`);
});

test("a witness of the log's name does not speak for the log", () => {
  const namesake = vkey(LOG.name, WITNESS.publicKey, "cosignature");
  const opened = open([cosign({ ...WITNESS, name: LOG.name }, TEXT, TIME)], [namesake]);
  expect(opened).toMatchObject({ verified: [], signatures: [{ vkey: namesake, time: TIME }] });
});

test("one key as a log's and as a witness's is two keys", () => {
  const both = [LOG_VKEY, vkey(LOG.name, LOG.publicKey, "cosignature")];
  expect(both[0]?.id).not.toBe(both[1]?.id);
  const opened = open([cosign(LOG, TEXT, TIME)], both);
  expect(opened).toMatchObject({ signatures: [{ vkey: both[0] }, { vkey: both[1], time: TIME }] });
});

test("a cosignature whose time was changed does not hold", () => {
  const signature = WITNESS.sign(cosignatureMessage(TEXT, TIME));
  const times = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n });
  fc.assert(
    fc.property(times, (time) => {
      const opened = open([line(time, signature)], [LOG_VKEY, WITNESS_VKEY]);
      expect("text" in opened).toBe(time === TIME);
    }),
  );
  expect(open([line(TIME, signature)], [WITNESS_VKEY])).toMatchObject({ text: TEXT });
});

test("a time past 2^63−1 refuses the note, though it was signed so", () => {
  const last = 2n ** 63n - 1n;
  const signed = (time: bigint): string => line(time, WITNESS.sign(cosignatureMessage(TEXT, time)));
  expect(open([signed(last)], [WITNESS_VKEY])).toMatchObject({ signatures: [{ time: last }] });
  expect(open([signed(last + 1n)], [WITNESS_VKEY])).toEqual({ problem: "bad-signature" });
});

test("a cosignature without a time refuses the note, though it was signed so", () => {
  const never = line(0n, WITNESS.sign(cosignatureMessage(TEXT, 0n)));
  expect(open([never], [WITNESS_VKEY])).toEqual({ problem: "bad-signature" });
});

test("a time is of the future when no clock that is off by five minutes could say it", () => {
  const times = [0n, TIME, TIME + 300n, TIME + 301n, 2n ** 63n - 1n];
  expect(times.map((time) => isFuture(time, TIME))).toEqual([false, false, false, true, true]);
});

test("neither kind of signature passes for the other, and none that is cut", () => {
  const plain = WITNESS.sign(cosignatureMessage(TEXT, TIME));
  for (const payload of [plain, plain.subarray(0, 7), concat(new Uint8Array(8), plain)]) {
    const bad = signatureLine(WITNESS.name, WITNESS.publicKey, payload, "cosignature");
    expect(open([bad], [LOG_VKEY, WITNESS_VKEY])).toEqual({ problem: "bad-signature" });
  }
  const asOwn = vkey(WITNESS.name, WITNESS.publicKey, "ed25519");
  const moved = signatureLine(WITNESS.name, WITNESS.publicKey, stamped(TIME, plain));
  expect(open([moved], [LOG_VKEY, asOwn])).toEqual({ problem: "bad-signature" });
});

test("a witness cosigns checkpoints only, and never without a time", () => {
  expect(() => cosign(WITNESS, "no checkpoint\n", TIME)).toThrow("cosignature:");
  for (const time of [-1n, 0n, 2n ** 63n]) {
    expect(() => cosign(WITNESS, TEXT, time)).toThrow("cosignature:");
  }
});

function stamped(time: bigint, signature: Uint8Array): Uint8Array {
  const stamp = new Uint8Array(8);
  new DataView(stamp.buffer).setBigUint64(0, time);
  return concat(stamp, signature);
}

function line(time: bigint, signature: Uint8Array): string {
  const payload = stamped(time, signature);
  return signatureLine(WITNESS.name, WITNESS.publicKey, payload, "cosignature");
}
