/** Months of a log, their preconditions, and the lines of their digests. */
import { z } from "zod";
import type { AllocationLine, PackLine } from "../../core/month/lines.ts";
import { CONDITIONS, Evidence } from "../../core/month/statement.ts";
import { IntegerText, LogId, MonthText, SignedComputeMsText } from "../../core/unit.ts";
import type * as read from "../../flow/month/read.ts";
import type * as show from "../../flow/month/show.ts";
import type * as shown from "../../flow/usage/show.ts";
import { exactly } from "./exactly.ts";
import { AsOf } from "./listings.ts";
import { Usage } from "./usages.ts";

export const Month = exactly<show.ShownMonth>()(
  z.strictObject({
    month: MonthText,
    state: z.enum(["open", "cut_off", "closed"]),
    closing: IntegerText.exactOptional(),
    closed: IntegerText.exactOptional(),
  }),
);

export const MonthList = exactly<shown.AsOf & { months: show.ShownMonth[] }>()(
  AsOf.extend({ months: z.array(Month) }),
);

const Condition = exactly<show.ShownCondition>()(
  z.strictObject({
    code: z.enum([...CONDITIONS, "matching"]),
    holds: z.boolean(),
    evidence: Evidence,
    missing: z.string().exactOptional(),
  }),
);

type Detail = Omit<show.MonthDetail, "usage"> & { usage: z.infer<typeof Usage> };
export const MonthDetail = exactly<Detail>()(
  Month.extend({ log: LogId, preconditions: z.array(Condition), usage: Usage }),
);

const Allocation = exactly<AllocationLine>()(
  z.strictObject({
    namespace_id: IntegerText,
    usage_month: MonthText,
    usage: SignedComputeMsText,
    included: SignedComputeMsText,
    packs: z.array(z.strictObject({ drawn: SignedComputeMsText, pack: IntegerText })),
    overage: SignedComputeMsText,
    absorbed: SignedComputeMsText,
    not_billable: SignedComputeMsText,
  }),
);

const PackRoll = exactly<PackLine>()(
  z.strictObject({
    namespace_id: IntegerText,
    pack: IntegerText,
    opening: SignedComputeMsText,
    bought: SignedComputeMsText,
    drawn: SignedComputeMsText,
    expired: SignedComputeMsText,
    refunded: SignedComputeMsText,
    closing: SignedComputeMsText,
  }),
);

const OfMonth = z.strictObject({ log: LogId, month: MonthText, next: z.string().exactOptional() });

export const AllocationPage = exactly<read.LinePage<AllocationLine>>()(
  OfMonth.extend({ lines: z.array(Allocation) }),
);
export const PackRollPage = exactly<read.LinePage<PackLine>>()(
  OfMonth.extend({ lines: z.array(PackRoll) }),
);
