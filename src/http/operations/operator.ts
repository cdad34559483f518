/** Logs, enrolments and the end of keys. */
import { NewLogKey } from "../../flow/key/log-key.ts";
import { NewLog } from "../../flow/log/create.ts";
import { NewVisibility } from "../../flow/log/visibility.ts";
import { KeyPage, LogKeyList, Logs } from "../answers/listings.ts";
import {
  EnrolmentReceipt,
  KeyReceipt,
  LogKeyReceipt,
  LogReceipt,
  VisibilityReceipt,
} from "../answers/receipts.ts";
import { json, type Operation, WRITING, written } from "./operation.ts";
import { LogEnrolment, LogRevocation, PageSearch } from "./shapes.ts";

export const OPERATOR = {
  "POST /v1/enrolments": {
    summary: "Name runners; the answer holds the one-time token, once",
    body: json(LogEnrolment),
    success: { 201: json(EnrolmentReceipt) },
    problems: [
      "two-trackings",
      "namespaces-needed",
      "starts-in-the-past",
      "approval-required",
      ...WRITING,
    ],
  },
  "POST /v1/keys/:kid/revoke": {
    summary: "End a key",
    body: json(LogRevocation),
    success: { 201: json(KeyReceipt) },
    problems: ["key-has-ended", ...WRITING],
  },
  "POST /v1/logs": {
    summary: "Make the log of an instance",
    body: json(NewLog),
    success: { 201: json(LogReceipt) },
    problems: ["log-exists", "approver-needed"],
  },
  "GET /v1/logs": {
    summary: "The logs that you may see",
    success: { 200: json(Logs) },
    problems: [],
  },
  "POST /v1/logs/:log/visibility": {
    summary: "Let anyone read the log, or no longer",
    body: json(NewVisibility),
    success: written(VisibilityReceipt),
    problems: ["approval-required", ...WRITING],
  },
  "POST /v1/logs/:log/log_keys": {
    summary: "A key that a log is signed with from now on, or no longer",
    body: json(NewLogKey),
    success: written(LogKeyReceipt),
    problems: [
      "inadmissible-key",
      "key-not-held",
      "key-in-use",
      "key-has-ended",
      "last-log-key",
      "successor-unsealed",
      "approval-required",
      ...WRITING,
    ],
  },
  "GET /v1/logs/:log/log_keys": {
    summary: "The keys that a log is or was signed with, and those that could be next",
    success: { 200: json(LogKeyList) },
    problems: [],
  },
  "GET /v1/logs/:log/keys": {
    summary: "Enrolled keys",
    query: PageSearch,
    success: { 200: json(KeyPage) },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
