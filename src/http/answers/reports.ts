/** What is answered to reports (BYTES §3). */
import { z } from "zod";
import { BODY, HOLD_CODES, HoldCode } from "../../core/entry.ts";
import type { ProblemCode } from "../../core/problem.ts";
import { HashText, IntegerText, LogId } from "../../core/unit.ts";
import type * as ingest from "../../flow/report/ingest.ts";
import { exactly } from "./exactly.ts";

/** `busy` in a batch: this one's own data could not be stored, and its neighbours were. */
export const REPORT_PROBLEMS = [
  "malformed",
  "unknown-key",
  "bad-signature",
  "non-canonical",
  "schema",
  "wrong-log",
  "wrong-typ",
  "conflict",
  "busy",
] as const satisfies readonly ProblemCode[];

const ResultCode = z.enum(["accepted", "duplicate", ...HOLD_CODES, ...REPORT_PROBLEMS]);

/** Over all results, once for the request; missing where no log is named, or its signer failed. */
export const ReceiptText = BODY.hold.shape.jws;

export const Result = exactly<ingest.Result & { code: z.infer<typeof ResultCode> }>()(
  z.strictObject({
    code: ResultCode,
    digest: HashText,
    counter: IntegerText.exactOptional(),
    index: IntegerText.exactOptional(),
    leaf: HashText.exactOptional(),
  }),
);

/** One report that an entry answers; the status says the same as the code. */
const Single = Result.required().extend({ log: LogId, receipt: ReceiptText.exactOptional() });
export const AcceptedReport = Single.extend({ code: z.literal("accepted") });
export const DuplicateReport = Single.extend({ code: z.literal("duplicate") });
export const HeldReport = Single.extend({ code: HoldCode });

export const Batch = exactly<Omit<ingest.Ingested, "results"> & { results: Result[] }>()(
  z.strictObject({
    log: z.union([LogId, z.literal("")]),
    results: z.array(Result).min(1),
    receipt: ReceiptText.exactOptional(),
  }),
);
type Result = z.infer<typeof Result>;

/** By 200: to a batch whatever its results, and to one report that says what an entry says already. */
export const Answered = z.union([Batch, DuplicateReport]);
