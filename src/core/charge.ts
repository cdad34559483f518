/** What a build costs. Rounded once per entry, so that sums are exact and know no order. */
import type { Factor } from "./factor.ts";
import { type ComputeMs, computeMs, type Milliseconds } from "./unit.ts";

const DECIMALS = 6;
const MICRO = 10n ** BigInt(DECIMALS);
/** A compute minute as a `ComputeMs`. */
export const MINUTE = 60_000n * MICRO;
/** Postgres numerics of our columns, and the six decimals of entries. */
const COMPUTE_MS = /^([0-9]{1,40})(?:\.([0-9]{1,6}))?$/;

/** Duration × factor, half even to 10⁻⁶ compute-milliseconds. */
export function charge(duration: Milliseconds, factor: Factor): ComputeMs {
  return portion(computeMs(duration * MICRO), factor);
}

/** Amount × share, half even to 10⁻⁶ compute-milliseconds. */
export function portion(amount: ComputeMs, share: Factor): ComputeMs {
  const scaled = amount * share.n;
  const floor = scaled / share.d;
  const twice = 2n * (scaled % share.d);
  const up = twice === share.d ? floor % 2n === 1n : twice > share.d;
  return computeMs(up ? floor + 1n : floor);
}

/** Always six decimals: `"0.000000"`. */
export function formatComputeMs(amount: ComputeMs): string {
  return decimal(amount, DECIMALS);
}

/** As `formatComputeMs`, of what may be below zero; never `-0.000000`. */
export function formatSignedComputeMs(amount: bigint): string {
  return signed(amount, formatComputeMs);
}

/** @throws Error on anything but a decimal of at most 40 and 6 digits: such texts are our own. */
export function parseComputeMs(text: string): ComputeMs {
  const [, whole, decimals = ""] = COMPUTE_MS.exec(text) ?? [];
  if (whole === undefined) throw new Error("charge: not an amount of compute milliseconds");
  return computeMs(BigInt(whole + decimals.padEnd(DECIMALS, "0")));
}

/** As `parseComputeMs`, of what may be below zero. */
export function parseSignedComputeMs(text: string): bigint {
  return text.startsWith("-") ? -parseComputeMs(text.slice(1)) : parseComputeMs(text);
}

/** Compute minutes of a sum, half up to `places` ≥ 1 decimals; for showing, never for adding up. */
export function computeMinutes(sum: ComputeMs, places = 4): string {
  const scaled = sum * 10n ** BigInt(places);
  return decimal((2n * scaled + MINUTE) / (2n * MINUTE), places);
}

/** As `computeMinutes`, of what may be below zero: half away from zero, and never `-0.0000`. */
export function signedComputeMinutes(amount: bigint, places = 4): string {
  return signed(amount, (magnitude) => computeMinutes(magnitude, places));
}

function signed(amount: bigint, write: (magnitude: ComputeMs) => string): string {
  const text = write(computeMs(amount < 0n ? -amount : amount));
  return amount < 0n && /[1-9]/.test(text) ? `-${text}` : text;
}

/** `value` × 10^−places, written with all its decimals. */
function decimal(value: bigint, places: number): string {
  const digits = String(value).padStart(places + 1, "0");
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`;
}
