/** Who has access, and what they did with it. */
import { z } from "zod";
import { DayText } from "../../core/body.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  LogId,
  NonEmptyText,
  PositiveText,
} from "../../core/unit.ts";
import type { AccessLine, DayDigest } from "../../flow/access/digest.ts";
import type * as principals from "../../flow/access/principals.ts";
import type { review } from "../../flow/access/review.ts";
import type * as show from "../../flow/access/show.ts";
import { exactly } from "./exactly.ts";
import { Receipt } from "./receipts.ts";

const PrincipalId = z.string().regex(/^p_[A-Za-z0-9_-]{22}$/);

const Line = exactly<AccessLine>()(
  z.strictObject({
    at: InstantText,
    by: PrincipalId,
    code: NonEmptyText.exactOptional(),
    day: DayText,
    log: LogId,
    method: NonEmptyText,
    number: IntegerText,
    request: z.uuid(),
    roles: z.string(),
    route: NonEmptyText,
    status: z.string().regex(/^[1-5][0-9]{2}$/),
    target: z.string(),
  }),
);

const Digest = exactly<DayDigest & { index: string }>()(
  z.strictObject({
    index: IntegerText,
    lines: IntegerText,
    lines_sha256: HashText,
    missing: PositiveText.exactOptional(),
  }),
);

export const AccessPage = exactly<show.AccessPage>()(
  z.strictObject({
    log: LogId,
    day: DayText,
    closed: z.boolean(),
    lines: z.array(Line),
    digest: Digest.exactOptional(),
    next: IntegerText.exactOptional(),
  }),
);

const ShownPrincipal = exactly<principals.ShownPrincipal>()(
  z.strictObject({
    id: PrincipalId,
    issuer: NonEmptyText,
    subject: NonEmptyText,
    roles: z.array(NonEmptyText),
    first_at: InstantText,
    last_on: DayText,
    barred_at: InstantText.exactOptional(),
  }),
);

export const PrincipalPage = exactly<principals.PrincipalPage>()(
  z.strictObject({
    log: LogId,
    principals: z.array(ShownPrincipal),
    next: PrincipalId.exactOptional(),
  }),
);

export const Barred = z.strictObject({ id: PrincipalId, log: LogId.exactOptional() });

export const ReviewReceipt = exactly<
  { index: string; leaf: string } & Pick<Awaited<ReturnType<typeof review>>, "principals" | "kept">
>()(Receipt.extend({ principals: IntegerText, kept: IntegerText }));
