/**
 * Scalars as they stand in signed and hashed bytes, and the units behind them. Only this file casts.
 * Wire forms are strings (signed JSON holds no numbers); code calculates with bigint.
 */
import { z } from "zod";
import { decodeBase64, decodeBase64url, isWellFormed, utf8Length } from "./text.ts";

declare const unit: unique symbol;
type Branded<T, U extends string> = T & { readonly [unit]: U };

/** Whole milliseconds of a build, 0 … 2^63−1. */
export type Milliseconds = Branded<bigint, "ms">;
/** Charge in units of 10⁻⁶ compute-milliseconds. */
export type ComputeMs = Branded<bigint, "compute-ms·1e-6">;

const INT64_MAX = 2n ** 63n - 1n;
const INTEGER = /^(?:0|[1-9][0-9]{0,18})$/;
const SIGNED_INTEGER = /^(?:0|-?[1-9][0-9]{0,18})$/;
const INSTANT =
  /^(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])T(?:[01][0-9]|2[0-3])(?::[0-5][0-9]){2}\.[0-9]{3}Z$/;
const FACTOR = /^(?:0|[1-9][0-9]{0,18})\/[1-9][0-9]{0,18}$/;
const COMPUTE_MS = /^(?:0|[1-9][0-9]{0,39})\.[0-9]{6}$/;
const CHARGE = /^-?(?:0|[1-9][0-9]{0,20})\.[0-9]{6}$/;
const TEXT_BYTES_MAX = 255;
const MONTH_MS_DIGITS = "YYYY-MM".length;

/** A refinement sees only texts of the right form: BigInt throws on others. */
const ONLY_IF_FORMED = { abort: true };

/** Integer 0 … 2^63−1 without leading zeros. */
export const IntegerText = z
  .string()
  .regex(INTEGER, ONLY_IF_FORMED)
  .refine((text) => text.length < 19 || BigInt(text) <= INT64_MAX);

/** Integer 1 … 2^63−1. */
export const PositiveText = IntegerText.refine((text) => text !== "0");

/** Integer −2^63+1 … 2^63−1; never `-0`. */
export const SignedIntegerText = z
  .string()
  .regex(SIGNED_INTEGER, ONLY_IF_FORMED)
  .refine((text) => text.length < 19 || BigInt(text.replace("-", "")) <= INT64_MAX);

/**
 * RFC 3339 UTC instant with exactly three fraction digits, and a date that exists. Not in the year
 * 0000, which PostgreSQL does not have: what is signed must be storable.
 */
export const InstantText = z.string().regex(INSTANT, ONLY_IF_FORMED).refine(isInstant);

/** First day of a UTC month, `YYYY-MM-01`. */
export const MonthText = z.string().regex(/^(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-01$/);

/** Well-formed text of at most 255 bytes of UTF-8 without C0 controls or DEL. */
export const Text = z.string().refine(isText);
export const NonEmptyText = Text.min(1);

/** `status` and `failure_reason`: values unknown to us are accepted. */
export const Word = z.string().regex(/^[a-z0-9_]{0,64}$/);

/** A log's opaque random id: 32 lowercase hex digits. */
export const LogId = z.string().regex(/^[0-9a-f]{32}$/);

/** RFC 7638 thumbprint of an Ed25519 key, base64url, 43 characters. */
export const Kid = z.string().refine((text) => decodeBase64url(text)?.length === 32);

/** 32 bytes, padded base64. */
export const HashText = z.string().refine((text) => decodeBase64(text)?.length === 32);

/** 16 random bytes, padded base64: nobody can confirm a guess of a body from its public hash. */
export const SaltText = z.string().refine((text) => decodeBase64(text)?.length === 16);

/** Reduced fraction `a/b`. */
export const FractionText = z.string().regex(FACTOR);

/** Compute-milliseconds with six decimals: a sum of charges. */
export const ComputeMsText = z.string().regex(COMPUTE_MS);

/** As above, and below zero with a leading `-`; zero has none. */
export const SignedComputeMsText = z
  .string()
  .regex(/^-?(?:0|[1-9][0-9]{0,39})\.[0-9]{6}$/)
  .refine((text) => text !== "-0.000000");

/**
 * What one build comes to is less, in units of `ComputeMs`, and so is what one line adds to it or takes away: 10²¹
 * compute-milliseconds, of which 2^63 still have a sum of 40 digits.
 */
export const CHARGE_LIMIT = 10n ** 27n;

/** Compute-milliseconds of one build, with six decimals. */
export const ChargeText = ComputeMsText.regex(CHARGE);

/** As above, of one line of an adjustment. */
export const SignedChargeText = SignedComputeMsText.regex(CHARGE);

export const Tracking = z.enum(["hosted", "self_managed"]);
export type Tracking = z.infer<typeof Tracking>;

export const Platform = z.enum(["dotcom", "dedicated", "self_managed"]);
export type Platform = z.infer<typeof Platform>;

/** @throws Error outside 0 … 2^63−1 */
export function milliseconds(value: bigint): Milliseconds {
  if (value < 0n || value > INT64_MAX) throw new Error("milliseconds: out of range");
  return value as Milliseconds;
}

/** @throws Error below zero */
export function computeMs(micro: bigint): ComputeMs {
  if (micro < 0n) throw new Error("computeMs: below zero");
  return micro as ComputeMs;
}

/** The instant's text for milliseconds since the epoch, years 0000 … 9999. */
export function instantText(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** Milliseconds since the epoch of a valid `InstantText`. */
export function epochMs(instant: string): number {
  return Date.parse(instant);
}

/** UTC month of an instant: half-open, so the stroke of midnight belongs to the new month. */
export function monthOf(instant: string): string {
  return `${instant.slice(0, MONTH_MS_DIGITS)}-01`;
}

export function nextMonth(month: string): string {
  const year = Number(month.slice(0, 4));
  const number = Number(month.slice(5, 7));
  const [nextYear, next] = number === 12 ? [year + 1, 1] : [year, number + 1];
  return `${String(nextYear).padStart(4, "0")}-${String(next).padStart(2, "0")}-01`;
}

/** The pattern has left only the last days of a month in doubt. Date.parse rolls them over, and is slow. */
function isInstant(text: string): boolean {
  const day = Number(text.slice("YYYY-MM-".length, "YYYY-MM-DD".length));
  const month = Number(text.slice("YYYY-".length, "YYYY-MM".length));
  return day <= 28 || day <= lastDay(Number(text.slice(0, "YYYY".length)), month);
}

function lastDay(year: number, month: number): number {
  if (month !== 2) return [4, 6, 9, 11].includes(month) ? 30 : 31;
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
}

function isText(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0x20 || unit === 0x7f) return false;
  }
  if (text.length * 3 <= TEXT_BYTES_MAX) return isWellFormed(text);
  return isWellFormed(text) && utf8Length(text) <= TEXT_BYTES_MAX;
}
