/** Seconds since the epoch by this machine's clock, as witnesses count time. */
export function secondsNow(): bigint {
  return BigInt(Math.floor(Date.now() / 1000));
}
