/** C2SP tlog-tiles entry bundles: `uint16 big-endian length ‖ entry`, again and again. */

/** What a length of two bytes can say. */
const ENTRY_BYTES_MAX = 65_535;

/** Throws on an entry longer than 65,535 bytes. */
export function encodeBundle(entries: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(entries.reduce((total, entry) => total + 2 + entry.length, 0));
  let offset = 0;
  for (const entry of entries) {
    if (entry.length > ENTRY_BYTES_MAX) throw new Error("bundle: an entry is too long");
    bytes[offset] = entry.length >> 8;
    bytes[offset + 1] = entry.length;
    bytes.set(entry, offset + 2);
    offset += 2 + entry.length;
  }
  return bytes;
}

/** Views into `bytes`, entry by entry; undefined when the last one is cut. */
export function decodeBundle(bytes: Uint8Array): Uint8Array[] | undefined {
  const entries: Uint8Array[] = [];
  let offset = 0;
  while (offset < bytes.length) {
    const [high, low] = bytes.subarray(offset, offset + 2);
    if (high === undefined || low === undefined) return undefined;
    const end = offset + 2 + ((high << 8) | low);
    if (end > bytes.length) return undefined;
    entries.push(bytes.subarray(offset + 2, end));
    offset = end;
  }
  return entries;
}
