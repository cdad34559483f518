/** Names of events, which anybody who has the log makes again. */
import { sha1 } from "@noble/hashes/legacy.js";
import { byteAt, concat, decodeHex, encodeHex, encodeUtf8 } from "../text.ts";

const UUID_BYTES = 16;
const [VERSION_AT, VARIANT_AT] = [6, 8];

/**
 * UUIDv5 (RFC 9562 §5.5) of `<index>/<line>` in the namespace of the log's id, whose 16 bytes are random and
 * nobody else's. SHA-1 defends nothing here: who chooses the entries chooses their events.
 *
 * @param log 32 hex digits
 */
export function eventId(log: string, name: `${bigint | string}/${number | string}`): string {
  const namespace = decodeHex(log);
  if (namespace?.length !== UUID_BYTES) throw new Error("feed: not the id of a log");
  const uuid = sha1(concat(namespace, encodeUtf8(name))).slice(0, UUID_BYTES);
  uuid[VERSION_AT] = (byteAt(uuid, VERSION_AT) & 0x0f) | 0x50;
  uuid[VARIANT_AT] = (byteAt(uuid, VARIANT_AT) & 0x3f) | 0x80;
  return encodeHex(uuid).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}

const INDEX_DIGITS = 19;
const LINE_DIGITS = 3;

/** Sorts as a text: the extension `sequence` of CloudEvents. */
export function sequenceOf(index: bigint, line: number): string {
  return `${String(index).padStart(INDEX_DIGITS, "0")}.${String(line).padStart(LINE_DIGITS, "0")}`;
}
