/** What a namespace was told. */
import { z } from "zod";
import { QuotaEvent } from "../../core/quota/event.ts";
import { InstantText, IntegerText, LogId } from "../../core/unit.ts";
import type * as notified from "../../flow/quota/notified.ts";
import { exactly } from "./exactly.ts";

export const Notified = exactly<notified.Notified>()(
  QuotaEvent.extend({
    id: z.string().regex(/^evt_[0-9a-f]{32}$/),
    number: IntegerText,
    state: z.enum(["pending", "delivered", "given_up"]),
    attempts: z.int().min(0),
    settled_at: InstantText.exactOptional(),
  }),
);

export const NotifiedPage = exactly<notified.NotifiedPage>()(
  z.strictObject({
    log: LogId,
    namespace_id: IntegerText,
    notifications: z.array(Notified),
    next: IntegerText.exactOptional(),
  }),
);
