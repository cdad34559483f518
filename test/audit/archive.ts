/** Archives in memory, honest until a test changes them, and the audit of one. */
import { sha256, verifyNow } from "../../audit/native.ts";
import { readHere } from "../../audit/reading/reader.ts";
import type { Source } from "../../audit/source.ts";
import { openSpill } from "../../audit/spill.ts";
import { type AuditOptions, type AuditResult, audit } from "../../audit/verify.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { formatCheckpoint } from "../../src/core/checkpoint.ts";
import type { Verify } from "../../src/core/ed25519.ts";
import type { Hash } from "../../src/core/hash.ts";
import { formatVkey, parseVkey, type Signer, signNote, type Vkey } from "../../src/core/note.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import {
  bundlePath,
  EMPTY_EDGE,
  edgeRoot,
  grow,
  partialTiles,
  tilePath,
} from "../../src/core/tile.ts";
import { testKey } from "../signing.ts";
import { LOG_ID, type TestLog } from "./log.ts";

export type Files = Map<string, Uint8Array>;

const LOG_KEY = testKey(1);
// Reading a key costs a scalar multiplication, and some tests audit thousands of archives.
const TRUSTED = vkey();

/** So does verifying, and nearly all of their signatures are the same. */
const verdicts = new Map<string, boolean>();
const verify: Verify = (signature, message, publicKey) => {
  const asked = Buffer.concat([signature, publicKey, message]).toString("latin1");
  const verdict = verdicts.get(asked) ?? verifyNow(signature, message, publicKey);
  verdicts.set(asked, verdict);
  return verdict;
};

/** All files of the archive with a checkpoint at each of these sizes; the last covers the log. */
export function filesOf(log: TestLog, sizes: readonly number[] = [log.size]): Files {
  const files: Files = new Map();
  let edge = EMPTY_EDGE;
  for (const size of sizes) {
    const grown = grow(edge, log.leaves.slice(Number(edge.size), size), sha256);
    edge = grown.edge;
    for (const tile of [...grown.full, ...partialTiles(edge)]) {
      const { level, index, width, bytes } = tile;
      files.set(tilePath(level, index, width), bytes);
      if (level > 0) continue;
      const first = Number(index) * 256;
      const bundle = encodeBundle(log.entries.slice(first, first + width));
      files.set(bundlePath(index, width), bundle);
    }
    files.set(`checkpoint/${size}`, checkpointOf(log, size));
  }
  return files;
}

export function checkpointOf(
  log: TestLog,
  size: number,
  root?: Hash,
  signers: readonly Signer[] = [signer(log.id)],
): Uint8Array {
  const { edge } = grow(EMPTY_EDGE, log.leaves.slice(0, size), sha256);
  const origin = `test/${log.id}`;
  const note = { origin, size: BigInt(size), root: root ?? edgeRoot(edge, sha256) };
  return encodeUtf8(signNote(formatCheckpoint(note), signers));
}

export function signer(id: string, key = LOG_KEY): Signer {
  return { name: `test/${id}`, publicKey: key.publicKey, sign: (message) => key.sign(message) };
}

export function vkeyText(id = LOG_ID): string {
  return formatVkey(`test/${id}`, LOG_KEY.publicKey);
}

export function vkey(id = LOG_ID): Vkey {
  const key = parseVkey(vkeyText(id));
  if (key === undefined) throw new Error("log: not a vkey");
  return key;
}

export function memorySource(files: Files): Source {
  return {
    read: async (path) => files.get(path),
    list: async function* (folder) {
      for (const path of files.keys())
        if (folder === "" || path.startsWith(`${folder}/`)) yield path;
    },
  };
}

export async function auditFiles(
  files: Files,
  options: Partial<AuditOptions> = {},
): Promise<AuditResult> {
  return await auditSource(memorySource(files), options);
}

export async function auditSource(
  source: Source,
  options: Partial<AuditOptions> = {},
): Promise<AuditResult> {
  const spill = openSpill();
  try {
    return await audit(source, {
      log: LOG_ID,
      vkeys: [TRUSTED],
      hash: sha256,
      verify,
      policy: undefined,
      now: BigInt(Math.floor(Date.now() / 1000)),
      reader: readHere({ hash: sha256, verify }),
      openPiles: spill.open,
      kept: [],
      live: false,
      usage: [],
      ...options,
    });
  } finally {
    spill.close();
  }
}

/** Codes of all findings, each once, and the lowest index at fault. */
export function said({ findings }: AuditResult): { codes: string[]; first: bigint | undefined } {
  return { codes: [...findings.byCode.keys()].sort(), first: findings.first?.index };
}
