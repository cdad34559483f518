/** SHA-256 and the two hashes of RFC 6962 that entries and tiles are built from. */
import { sha256 as nobleSha256 } from "@noble/hashes/sha2.js";

/** 32 bytes. */
export type Hash = Uint8Array;

/** Services pass node:crypto's, which is about four times as fast as the default. */
export type Sha256 = (bytes: Uint8Array) => Hash;

export const sha256: Sha256 = (bytes) => nobleSha256(bytes);

/** RFC 6962 §2.1: the root of a log without entries, SHA-256 of nothing. */
export const EMPTY_ROOT: Hash = sha256(new Uint8Array());

/** RFC 6962 §2.1. The prefix keeps an inner node from passing as an entry. */
export function leafHash(bytes: Uint8Array, hash: Sha256 = sha256): Hash {
  const input = new Uint8Array(1 + bytes.length);
  input.set(bytes, 1);
  return hash(input);
}

/** RFC 6962 §2.1. Nothing marks where `left` ends: who reads hashes from outside asks for 32 bytes. */
export function nodeHash(left: Hash, right: Hash, hash: Sha256 = sha256): Hash {
  const input = new Uint8Array(1 + left.length + right.length);
  input[0] = 1;
  input.set(left, 1);
  input.set(right, 1 + left.length);
  return hash(input);
}
