/** What agents say: the signed statement in the body is the credential. */
import { Promised } from "../../flow/report/prove.ts";
import { KeptPromise } from "../answers/promises.ts";
import { AttestationReceipt, ClaimReceipt, KeyReceipt } from "../answers/receipts.ts";
import { AcceptedReport, Answered, HeldReport, REPORT_PROBLEMS } from "../answers/reports.ts";
import { jose, json, type Operation, SERVING, WRITING, written } from "./operation.ts";
import { KeyRotation, Reports, TokenClaim } from "./shapes.ts";

export const RUNNER = {
  "POST /v1/reports": {
    summary: "Signed reports: one JWS, or up to 500 with a result for each",
    body: { ...json(Reports), ...jose },
    success: {
      200: json(Answered),
      201: json(AcceptedReport),
      202: json(HeldReport),
    },
    problems: [...REPORT_PROBLEMS, "mixed-logs", "too-many", "rate-limited", ...WRITING],
  },
  "POST /v1/attestations": {
    summary: "An agent's high-water marks, signed",
    body: jose,
    success: { 201: json(AttestationReceipt) },
    problems: [
      "malformed",
      "unknown-key",
      "bad-signature",
      "wrong-typ",
      "non-canonical",
      "schema",
      "wrong-log",
      "key-has-ended",
      "rate-limited",
      ...WRITING,
    ],
  },
  "POST /v1/enrolments/claim": {
    summary: "Bring the key for an enrolment",
    body: json(TokenClaim),
    success: written(ClaimReceipt),
    problems: [
      "malformed",
      "inadmissible-key",
      "bad-signature",
      "unknown-token",
      "token-expired",
      "token-used",
      "key-in-use",
      "log-behind",
      "archive-unavailable",
      "signer-unavailable",
    ],
  },
  "POST /v1/keys/rotate": {
    summary: "Replace a key by its successor",
    body: json(KeyRotation),
    success: written(KeyReceipt),
    problems: [
      "malformed",
      "inadmissible-key",
      "bad-signature",
      "unknown-key",
      "wrong-log",
      "unknown-token",
      "token-used",
      "key-in-use",
      "key-has-ended",
      ...WRITING,
    ],
  },
  "POST /v1/receipts/prove": {
    summary: "Proofs of what a receipt promises, under the published checkpoint",
    body: json(Promised),
    success: { 200: json(KeptPromise) },
    problems: ["invalid-receipt", "not-found", "log-behind", ...SERVING],
  },
} as const satisfies Readonly<Record<string, Operation>>;
