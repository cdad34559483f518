/** A log that grows and one that forks from it, and what a log's service asks of a witness about them. */
import { expect } from "vitest";
import { sha256, verifyNow } from "../../audit/native.ts";
import type { Witnessing } from "../../audit/witness/answer.ts";
import { type StoreOptions, WitnessStore } from "../../audit/witness/store.ts";
import {
  formatVkey,
  linesOf,
  noteOf,
  openNote,
  parseVkey,
  type Signer,
  type Vkey,
} from "../../src/core/note.ts";
import { consistencyProof, leafNodes } from "../../src/core/proof.ts";
import { decodeUtf8, encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import { formatAddCheckpoint } from "../../src/core/witness.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, vkey } from "./archive.ts";
import { longLog, smallLog } from "./honest.ts";
import { LOG_ID, SALT, type TestLog } from "./log.ts";

export const ORIGIN = `test/${LOG_ID}`;
export const SECONDS = 1_795_000_000;
const WITNESS: Signer = { name: "witness.test", ...testKey(50) };
export const WITNESS_KEY = keyOf(WITNESS);

export const LOG = longLog(40);
/** Like the log up to its seventh entry, and another from there. */
export const FORK = forkOf();

/** The request that takes a witness from `old` to `size`. */
export function request(log: TestLog, old: number, size: number): Uint8Array {
  const read = leafNodes(log.leaves, sha256);
  const proof = old === 0 ? [] : consistencyProof(BigInt(old), BigInt(size), read, sha256);
  const checkpoint = decodeUtf8(checkpointOf(log, size)) ?? "";
  return encodeUtf8(formatAddCheckpoint({ old: BigInt(old), proof, checkpoint }));
}

/** The witness's own cosignature over a checkpoint of this size holds. */
export function expectCosigned(
  { body, status }: { body: string; status: number },
  size: number,
  log = LOG,
): void {
  expect(status).toBe(200);
  const text = linesOf(decodeUtf8(checkpointOf(log, size)) ?? "")?.text ?? "";
  const opened = openNote(noteOf(text, [body]), [WITNESS_KEY], verifyNow);
  expect(opened).toMatchObject({ signatures: [{ time: BigInt(SECONDS) }] });
}

export function witnessing(
  folder: string,
  { now = () => SECONDS * 1000, ...said }: Partial<StoreOptions> = {},
): Witnessing {
  const store = new WitnessStore({ folder, origins: [ORIGIN], now, ...said });
  return { signer: WITNESS, logs: new Map([[ORIGIN, [vkey()]]]), store, now };
}

function keyOf({ name, publicKey }: Signer): Vkey {
  const key = parseVkey(formatVkey(name, publicKey, "cosignature"));
  if (key === undefined) throw new Error("witness: no key");
  return key;
}

function forkOf(): TestLog {
  const log = smallLog();
  const schema_sha256 = encodeBase64(new Uint8Array(32));
  while (log.size < 40)
    log.write("service", { schema_sha256, salt: SALT, version: `x${log.size}` });
  return log;
}
