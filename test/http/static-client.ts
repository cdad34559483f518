/**
 * A client of C2SP tlog-tiles that knows the specification and nothing of this service: it fetches
 * static files below a prefix, and believes only what hashes to the signed root.
 */
import { expect } from "vitest";
import { decodeBundle } from "../../src/core/bundle.ts";
import { type Checkpoint, parseCheckpoint } from "../../src/core/checkpoint.ts";
import { leafHash } from "../../src/core/hash.ts";
import { openNote, parseVkey } from "../../src/core/note.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { naiveRoot, naiveTiles } from "../core/merkle.ts";
import { verifyByOpenssl } from "../signing.ts";

export interface Prefix {
  /** Without a trailing slash. */
  url: string;
  token?: string | undefined;
}

export interface ReadLog {
  size: number;
  entries: Uint8Array[];
}

/** @throws Error unless the answer is 200 */
export async function fetchFile({ url, token }: Prefix, path: string): Promise<Uint8Array> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`${url}/${path}`, { headers });
  if (response.status !== 200) throw new Error(`${path} is answered ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** @throws Error for a note that this key did not sign */
export function openCheckpoint(note: string, vkey: string): Checkpoint {
  const key = parseVkey(vkey);
  const opened = openNote(note, key ? [key] : [], verifyByOpenssl);
  const checkpoint = "text" in opened ? parseCheckpoint(opened.text) : undefined;
  if (checkpoint === undefined) throw new Error("the checkpoint is not signed by this key");
  return checkpoint;
}

/** Everything that the newest checkpoint implies, each tile held to the entries and they to the root. */
export async function readLog(prefix: Prefix, vkey: string): Promise<ReadLog> {
  const note = new TextDecoder().decode(await fetchFile(prefix, "checkpoint"));
  const checkpoint = openCheckpoint(note, vkey);
  const size = Number(checkpoint.size);
  const entries: Uint8Array[] = [];
  for (let start = 0; start < size; start += 256) {
    const width = Math.min(256, size - start);
    const name = String(start / 256).padStart(3, "0");
    const path = `tile/entries/${name}${width < 256 ? `.p/${width}` : ""}`;
    const bundle = decodeBundle(await fetchFile(prefix, path)) ?? [];
    expect(bundle).toHaveLength(width);
    entries.push(...bundle);
  }
  const leaves = entries.map((entry) => leafHash(entry));
  expect(encodeBase64(naiveRoot(leaves))).toBe(encodeBase64(checkpoint.root));
  for (const [path, bytes] of naiveTiles(leaves)) {
    expect(encodeBase64(await fetchFile(prefix, path))).toBe(encodeBase64(bytes));
  }
  return { size, entries };
}
