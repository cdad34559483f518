/** One month, wherever its figures stand. */
import { z } from "zod";
import { IntegerText, LogId, NonEmptyText } from "../../core/unit.ts";
import { FIGURES } from "../../flow/tie-out/leg.ts";
import type * as tieOut from "../../flow/tie-out/tie-out.ts";
import { exactly } from "./exactly.ts";
import { Month } from "./months.ts";

const Figure = z.enum(FIGURES);

export const TieOut = exactly<tieOut.TieOut>()(
  Month.extend({
    log: LogId,
    as_of: IntegerText,
    figures: z.array(
      z.strictObject({
        figure: Figure,
        legs: z.array(z.strictObject({ leg: NonEmptyText, value: z.string() })),
      }),
    ),
    differences: z.array(
      z.strictObject({
        figure: Figure,
        leg: NonEmptyText,
        value: z.string(),
        against: NonEmptyText,
        expected: z.string(),
      }),
    ),
    not_yet: z.array(NonEmptyText),
  }),
);
