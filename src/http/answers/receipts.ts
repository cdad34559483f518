/**
 * Where that which was written stands. The instant is in the entry, and whether it was written now is
 * said by 201 or 200.
 */
import { z } from "zod";
import {
  HashText,
  InstantText,
  IntegerText,
  Kid,
  LogId,
  NonEmptyText,
  Platform,
} from "../../core/unit.ts";
import type { Claimed } from "../../flow/key/claim.ts";
import type { Enrolled } from "../../flow/key/enrol.ts";
import { NewLogKey } from "../../flow/key/log-key.ts";
import type { Rotated } from "../../flow/key/rotate.ts";
import type * as commit from "../../flow/log/commit-entry.ts";
import type { create } from "../../flow/log/create.ts";
import { NewVisibility } from "../../flow/log/visibility.ts";
import type { attest } from "../../flow/report/attest.ts";
import { exactly } from "./exactly.ts";
import { Identity } from "./listings.ts";

/** 32 random bytes. */
const Token = z.base64url().length(43);

type OnWire<R extends commit.Receipt> = Omit<R, keyof commit.Receipt> & {
  index: string;
  leaf: string;
};

export const Receipt = exactly<OnWire<commit.Receipt>>()(
  z.strictObject({ index: IntegerText, leaf: HashText }),
);

export const AttestationReceipt = exactly<OnWire<Awaited<ReturnType<typeof attest>>>>()(
  Receipt.extend({ log: LogId }),
);

export const ClaimReceipt = exactly<OnWire<Claimed> & Identity>()(
  Receipt.extend({
    log: LogId,
    kid: Kid,
    platform: Platform,
    unique_id: NonEmptyText,
    runners: z.array(NonEmptyText),
    ...Identity.shape,
  }),
);

/** Of the successor, or of the key that was ended. */
export const KeyReceipt = exactly<OnWire<Rotated>>()(Receipt.extend({ log: LogId, kid: Kid }));

export const EnrolmentReceipt = exactly<{ log: string } & OnWire<Enrolled>>()(
  Receipt.extend({ log: LogId, token: Token, claim_until: InstantText }),
);

export const LogReceipt = exactly<OnWire<Awaited<ReturnType<typeof create>>> & Identity>()(
  Receipt.extend({ log: LogId, ...Identity.shape }),
);

export const LogKeyReceipt = Receipt.extend(NewLogKey.shape);

export const VisibilityReceipt = Receipt.extend(NewVisibility.shape);
