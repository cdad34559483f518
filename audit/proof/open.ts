/** A proof's file opened: an entry that a trusted key's checkpoint covers, whatever the entry says. */
import type { Verify } from "../../src/core/ed25519.ts";
import type { Entry } from "../../src/core/entry.ts";
import { leafHash, type Sha256 } from "../../src/core/hash.ts";
import type { Vkey } from "../../src/core/note.ts";
import { verifyInclusion } from "../../src/core/proof.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import { parseTlogProof } from "../../src/core/tlog-proof.ts";
import { readEntry } from "../archive/block.ts";
import { isOriginOf, type OpenedCheckpoint, openCheckpoint } from "../archive/checkpoints.ts";
import { CannotLook, type FindingCode, type Findings, type OpenCode } from "../finding.ts";

export interface Trusting {
  vkeys: readonly Vkey[];
  hash: Sha256;
  verify: Verify;
}

export interface Outcome {
  findings: Findings;
  open: Findings<OpenCode>;
}

export interface ProvenEntry {
  entry: Entry;
  checkpoint: OpenedCheckpoint;
}

/**
 * Undefined after a finding, or where the entry is of a later version's kind.
 *
 * @throws CannotLook when the checkpoint is by no given key: it proves nothing and accuses nobody
 */
export function openProof(
  text: string,
  { hash, verify, vkeys }: Trusting,
  { findings, open }: Outcome,
): ProvenEntry | undefined {
  const proof = parseTlogProof(text);
  if (proof?.extra === undefined) {
    findings.add("proof-malformed", {}, proof ? "it carries no entry" : "no C2SP tlog-proof");
    return undefined;
  }
  const { extra: bytes, hashes, index } = proof;
  const add = (code: FindingCode, detail: string): undefined => {
    findings.add(code, { index }, detail);
  };
  const checkpoint = openCheckpoint(encodeUtf8(proof.checkpoint), { vkeys, verify });
  if (checkpoint === "checkpoint-untrusted") {
    throw new CannotLook("the proof's checkpoint is not signed by a given key");
  }
  if (typeof checkpoint === "string") return add(checkpoint, "the proof's checkpoint");
  const { origin, root, size } = checkpoint;
  if (!verifyInclusion({ leaf: leafHash(bytes, hash), index, size, proof: hashes, root }, hash)) {
    return add("proof-inclusion", `not entry ${index} of the ${size} that were signed`);
  }
  const entry = readEntry(bytes);
  if (entry === "malformed") return add("entry-malformed", "not the canonical bytes of an entry");
  if (entry.index !== index) return add("entry-swapped", `it says index ${entry.index}`);
  if (!isOriginOf(entry.log, origin)) return add("entry-foreign", `an entry of log ${entry.log}`);
  if (entry.kind === "unknown-kind") {
    open.add("unknown-kind", { index }, "a later version's entry");
    return undefined;
  }
  return { entry, checkpoint };
}
