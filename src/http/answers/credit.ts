/** Credit runs and their previews, and what another card would have charged. */
import { z } from "zod";
import { CreditForm } from "../../core/credit-run.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  LogId,
  MonthText,
  NonEmptyText,
  SignedComputeMsText,
  Word,
} from "../../core/unit.ts";
import type * as show from "../../flow/credit/show.ts";
import type * as upload from "../../flow/credit/upload.ts";
import type * as what from "../../flow/money/what-if.ts";
import type { AsOf as Size } from "../../flow/usage/show.ts";
import { exactly } from "./exactly.ts";
import { AsOf } from "./listings.ts";

export const NamespaceList = exactly<upload.Uploaded>()(
  z.strictObject({ namespaces_sha256: HashText, namespaces: IntegerText }),
);

const IndexText = z.union([IntegerText, z.literal("")]);
/** Canonical JSON. */
const SelectionText = z.string().startsWith("{");
const LINES = { lines: IntegerText, lines_sha256: HashText, total: SignedComputeMsText };

export const CreditPreview = exactly<show.ShownPreview>()(
  z.strictObject({
    preview: LogId,
    form: CreditForm,
    selection: SelectionText,
    ...LINES,
    namespaces: IntegerText,
    top: z.array(z.strictObject({ namespace_id: IntegerText, amount: SignedComputeMsText })),
    by_machine_type: z.array(
      z.strictObject({
        machine_type: NonEmptyText,
        lines: IntegerText,
        amount: SignedComputeMsText,
      }),
    ),
  }),
);

const SHOWN = {
  index: IntegerText,
  at: InstantText,
  form: CreditForm,
  selection: SelectionText,
  ...LINES,
  written: IntegerText,
  reason: Word,
  ticket: NonEmptyText,
  approval: IndexText,
  reverses: IndexText,
  reversed: IndexText,
};

export const CreditRun = exactly<Size & show.ShownCreditRun>()(AsOf.extend(SHOWN));

export const CreditRunPage = exactly<
  Size & { credit_runs: show.ShownCreditRun[]; next?: string }
>()(
  AsOf.extend({
    credit_runs: z.array(z.strictObject(SHOWN)),
    next: IntegerText.exactOptional(),
  }),
);

/** Lines 0 … written−1 of `lines` stand. */
export const CreditProgress = z.strictObject({ lines: IntegerText, written: IntegerText });

export const WhatIfPart = exactly<what.WhatIfPart>()(
  z.strictObject({
    log: LogId,
    as_of: IntegerText,
    rows: z.array(
      z.strictObject({
        namespace_id: IntegerText,
        usage_month: MonthText,
        billing_month: MonthText,
        machine_type: NonEmptyText,
        jobs: IntegerText,
        unrated: IntegerText,
        stands: SignedComputeMsText,
        would: SignedComputeMsText,
        difference: SignedComputeMsText,
      }),
    ),
    next: IntegerText.exactOptional(),
  }),
);
