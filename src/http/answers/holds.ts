/** Reports that did not become usage, and their end. */
import { z } from "zod";
import { BODY, HoldCode } from "../../core/entry.ts";
import { InstantText, IntegerText } from "../../core/unit.ts";
import type * as show from "../../flow/hold/show.ts";
import { exactly } from "./exactly.ts";
import { Page, type PageOf, Recorded } from "./listings.ts";

const { by, outcome, reason, ticket } = BODY.hold_resolved.shape;
const place = { index: IntegerText, at: InstantText };

const HoldResolution = z.strictObject({ ...place, by, outcome, reason, ticket });
export const Hold = exactly<show.ShownHold>()(
  Recorded.extend({
    age_ms: IntegerText,
    code: HoldCode,
    resolution: HoldResolution.exactOptional(),
  }),
);
export const HoldPage = exactly<PageOf<show.ShownHold, "holds">>()(
  Page.extend({ holds: z.array(Hold) }),
);

const ConflictResolution = HoldResolution.extend({ outcome: BODY.conflict_resolved.shape.outcome });
export const Conflict = exactly<show.ShownConflict>()(
  Recorded.extend({
    age_ms: IntegerText,
    stands: IntegerText,
    resolution: ConflictResolution.exactOptional(),
  }),
);
export const ConflictPage = exactly<PageOf<show.ShownConflict, "conflicts">>()(
  Page.extend({ conflicts: z.array(Conflict) }),
);
