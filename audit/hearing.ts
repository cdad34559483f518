/** What agents signed in each bundle, read ahead of the judgement that needs the entries before it. */
import { thumbprint } from "../src/core/ed25519.ts";
import { Claim, TYP } from "../src/core/report.ts";
import { decodeBase64url, encodeUtf8, equal } from "../src/core/text.ts";
import { readEntry, splitBundle } from "./archive/block.ts";
import type { BlockFiles } from "./archive/files.ts";
import { readStatement } from "./prefix/statement.ts";
import type { Packed } from "./reading/bundle.ts";
import type { Reader } from "./reading/reader.ts";

/** A block and its bundle's entries, while these are being read; undefined where it has no bundle. */
export interface HeardBlock {
  files: BlockFiles;
  bundle: Promise<Packed> | undefined;
}

/** Bundles that are being read while an earlier one is judged: enough for all threads. */
const AHEAD = 8;

export async function* hear(
  blocks: AsyncIterable<BlockFiles>,
  reader: Reader,
): AsyncGenerator<HeardBlock> {
  const queue: HeardBlock[] = [];
  try {
    for await (const files of blocks) {
      const bytes = files.bundle?.bytes;
      if (bytes !== undefined) learnKeys(bytes, reader);
      const bundle = bytes && reader.read(bytes);
      bundle?.catch(() => {}); // it is awaited by whoever comes to this block
      queue.push({ files, bundle });
      const next = queue.length > AHEAD ? queue.shift() : undefined;
      if (next !== undefined) yield next;
    }
  } catch (error) {
    // What was read before is judged before anybody learns that no more can be.
    yield* queue;
    throw error;
  }
  yield* queue;
}

/** A key names itself: whether it may sign is judged later, by the entries before. */
function learnKeys(bundle: Uint8Array, reader: Reader): void {
  for (const bytes of splitBundle(bundle).entries) {
    const entry = isKey(bytes) ? readEntry(bytes) : "malformed";
    if (entry === "malformed" || entry.kind !== "key") continue;
    const claim = readStatement(entry.body.jws, TYP.claim, Claim);
    const key = typeof claim === "string" ? undefined : decodeBase64url(claim.payload.public_key.x);
    if (key !== undefined && thumbprint(key) === entry.body.kid) reader.learn(entry.body.kid, key);
  }
}

const KIND = encodeUtf8('"kind":"key"');
/** What follows the kind has one length: an id, a hash and a version. */
const AFTER_KIND = `,"log":"${"0".repeat(32)}","prev":"${"0".repeat(44)}","v":"1"}`.length;

/** Whether an entry is one of a key, if it is one at all: read off where its kind must stand. */
function isKey(entry: Uint8Array): boolean {
  const end = entry.length - AFTER_KIND;
  return end >= KIND.length && equal(entry.subarray(end - KIND.length, end), KIND);
}
