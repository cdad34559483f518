/** What several variables hold. A shape says nothing of the value that it refuses: it may be a secret. */
import { z } from "zod";

/** Decimal digits and nothing else: `Number` takes an empty text for 0, and `0x10` for 16. */
const WHOLE = /^(?:0|[1-9][0-9]{0,8})$/;

export function wholeNumber(min: number, max: number): z.ZodType<number, string> {
  const form = `a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(WHOLE, form)
    .transform(Number)
    .refine((value) => value >= min && value <= max, form);
}

/**
 * Where requests are sent. Without a user and a password: nothing that is asked by fetch may have them, and
 * its error would name them.
 */
export function webAddress(protocol: RegExp): z.ZodType<string, string> {
  return z
    .url({ protocol })
    .refine((text) => !hasCredentials(text), "an address without user and password");
}

function hasCredentials(text: string): boolean {
  if (!URL.canParse(text)) return false; // said by the shape itself
  const { password, username } = new URL(text);
  return username !== "" || password !== "";
}
