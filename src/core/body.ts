/** What the bodies of several kinds of entry have in common (BYTES §§1, 4). */
import { z } from "zod";
import { InstantText, IntegerText, NonEmptyText, SaltText, Word } from "./unit.ts";

export const JWS_CHARS_MAX = 4_096;

export const Jws = z.string().min(1).max(JWS_CHARS_MAX);

/** Index of another entry of the same log, or `""` where there is none. */
export const IndexOrNone = z.union([IntegerText, z.literal("")]);

/** A factor as people write it: decimal, `a/b`, or `monthly_minutes/300000`. */
const CardFactor = z
  .string()
  .regex(/^(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|[0-9]{1,9}\/[0-9]{1,9}|monthly_minutes\/300000)$/);
export const Factors = z.record(NonEmptyText, CardFactor);

/** UTC day, `YYYY-MM-DD`, that exists. */
export const DayText = z
  .string()
  .regex(/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/)
  .refine((day) => InstantText.safeParse(`${day}T00:00:00.000Z`).success);

/** What every entry of a person has. */
export const PERSON = { by: NonEmptyText, salt: SaltText };
/** Beside it: what two persons decided. `approval` is the index of an `approval`, or `""`. */
export const APPROVED = { approval: IndexOrNone, ...PERSON };
/** Why: a code of the operator's own list, and where the case is written down. */
export const CAUSE = { reason: Word.min(1), ticket: NonEmptyText };
