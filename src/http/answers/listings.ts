/** Logs, and the registers of each, a page at a time. */
import { z } from "zod";
import { BODY } from "../../core/entry.ts";
import { Report } from "../../core/report.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  Kid,
  LogId,
  NonEmptyText,
  Platform,
} from "../../core/unit.ts";
import type { LogIdentity } from "../../flow/key/identify.ts";
import type { ShownLogKey, showLogKeys } from "../../flow/key/log-key.ts";
import type * as show from "../../flow/usage/show.ts";
import { exactly } from "./exactly.ts";

/** A key of signed notes: its name, the id of both, and the key itself. */
export const VkeyText = z.string().regex(/^[^+\s]+\+[0-9a-f]{8}\+[A-Za-z0-9+/]{44}$/);

/** The name under which a log's checkpoints are signed, and the keys of them and of receipts. */
export const Identity = exactly<LogIdentity>()(
  z.strictObject({ origin: NonEmptyText, vkey: VkeyText, receipt_vkey: VkeyText }),
);
export type Identity = z.infer<typeof Identity>;

export const Log = exactly<show.ShownLog & Identity>()(
  z.strictObject({
    log: LogId,
    unique_id: NonEmptyText,
    platform: Platform,
    size: IntegerText,
    sealed: IntegerText,
    ...Identity.shape,
  }),
);
export const Logs = z.strictObject({ logs: z.array(Log) });

export const LogKey = exactly<ShownLogKey>()(
  z.strictObject({
    purpose: BODY.log_key.shape.purpose,
    vkey: VkeyText,
    state: z.enum(["in_force", "retired", "held"]),
    index: IntegerText.exactOptional(),
    held: z.boolean(),
  }),
);
export const LogKeyList = exactly<Awaited<ReturnType<typeof showLogKeys>>>()(
  z.strictObject({ log: LogId, origin: NonEmptyText, keys: z.array(LogKey) }),
);

export const AsOf = exactly<show.AsOf>()(
  z.strictObject({ log: LogId, as_of: IntegerText, sealed: IntegerText }),
);
export const Page = AsOf.extend({ next: IntegerText.exactOptional() });

export const Key = exactly<show.ShownKey>()(
  z.strictObject({
    kid: Kid,
    index: IntegerText,
    public_key: z.base64url().length(43),
    enrolment: IntegerText,
    runners: z.array(NonEmptyText),
    namespaces: z.array(IntegerText),
    revoked: z.boolean(),
    trusted_up_to: IntegerText.exactOptional(),
  }),
);
export const KeyPage = exactly<PageOf<show.ShownKey, "keys">>()(
  Page.extend({ keys: z.array(Key) }),
);

/** A signed report in the entry that holds it. */
export const Recorded = z.strictObject({
  index: IntegerText,
  at: InstantText,
  leaf: HashText,
  kid: Kid,
  jws: BODY.hold.shape.jws,
  report: Report,
});

export type PageOf<Item, Name extends string> = Omit<show.Page<Item>, "items"> &
  Record<Name, Item[]>;
