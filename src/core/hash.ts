/** SHA-256 and the two hashes of RFC 6962 that entries and tiles are built from. */
import { sha256 as nobleSha256 } from "@noble/hashes/sha2.js";

/** 32 bytes. */
export type Hash = Uint8Array;

/** Services pass node:crypto's, which is about four times as fast as the default. */
export type Sha256 = (bytes: Uint8Array) => Hash;

export const sha256: Sha256 = (bytes) => nobleSha256(bytes);

/** RFC 6962 §2.1: the root of a log without entries, SHA-256 of nothing. */
export const EMPTY_ROOT: Hash = sha256(new Uint8Array());

/**
 * What is hashed is put together in these: arrays of more than 64 bytes lie outside of V8's heap, and
 * making one costs as much as hashing it. No hash keeps what it is given.
 */
const LEAF = new Uint8Array(1 + 65_535);
const NODE = Uint8Array.of(1, ...new Uint8Array(64));

/** RFC 6962 §2.1. The prefix keeps an inner node from passing as an entry. */
export function leafHash(bytes: Uint8Array, hash: Sha256 = sha256): Hash {
  const length = 1 + bytes.length;
  const input = length > LEAF.length ? new Uint8Array(length) : LEAF.subarray(0, length);
  input.set(bytes, 1);
  return hash(input);
}

/** RFC 6962 §2.1. Nothing marks where `left` ends: who reads hashes from outside asks for 32 bytes. */
export function nodeHash(left: Hash, right: Hash, hash: Sha256 = sha256): Hash {
  const length = 1 + left.length + right.length;
  const input = length === NODE.length ? NODE : Uint8Array.of(1, ...new Uint8Array(length - 1));
  input.set(left, 1);
  input.set(right, 1 + left.length);
  return hash(input);
}
