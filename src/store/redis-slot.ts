/** Redis Cluster specification, "Key distribution model": which of the 16,384 slots a key is in. */

const SLOTS = 16_384;

/** @param key with a hash tag: only what is in its first braces counts */
export function slotOf(key: string): number {
  const start = key.indexOf("{") + 1;
  return crc16(Buffer.from(key.slice(start, key.indexOf("}", start)))) % SLOTS;
}

/** CRC-16/XMODEM: polynomial 0x1021, from zero. */
function crc16(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = ((crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
  }
  return crc;
}
