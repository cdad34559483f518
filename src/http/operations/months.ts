/** Months, how they are closed, and their statements. */
import { z } from "zod";
import { Statement } from "../../core/month/statement.ts";
import { AllocationPage, MonthDetail, MonthList, PackRollPage } from "../answers/months.ts";
import { Receipt } from "../answers/receipts.ts";
import { TieOut } from "../answers/tie-out.ts";
import { json, type Operation, text, WRITING } from "./operation.ts";
import { AllocationSearch, PackRollSearch, StatementSearch } from "./shapes.ts";

const Page = z.string().startsWith("<!doctype html>");
/** C2SP signed-note. */
const Note = z.string().regex(/^\S+\/statement\n/);

export const MONTHS = {
  "GET /v1/months/:log": {
    summary: "Months of a log and where they stand",
    success: { 200: json(MonthList) },
    problems: [],
  },
  "GET /v1/months/:log/:month": {
    summary: "One month: what was used, and what its closing waits for",
    success: { 200: json(MonthDetail) },
    problems: [],
  },
  "POST /v1/months/:log/:month/close": {
    summary: "Cut a month off: what comes later is posted to the next one",
    success: { 201: json(Receipt) },
    problems: ["months-in-order", "month-not-ready", "approval-required", ...WRITING],
  },
  "POST /v1/months/:log/:month/withdraw": {
    summary: "Take the last cut-off back, as long as its month is not closed",
    success: { 201: json(Receipt) },
    problems: ["months-in-order", "month-closed", "approval-required", ...WRITING],
  },
  "POST /v1/months/:log/:month/finish": {
    summary: "Close a month that is cut off, for ever: the entry that did, whoever wrote it",
    success: { 200: json(Receipt) },
    problems: ["months-in-order", "month-not-ready", ...WRITING],
  },
  "GET /v1/months/:log/:month/statement": {
    summary: "The statement of a closed month, as canonical JSON",
    success: { 200: json(Statement) },
    problems: ["not-as-signed"],
  },
  "GET /v1/months/:log/:month/statement.note": {
    summary: "The statement's hash, signed by the log's keys",
    success: { 200: text(Note) },
    problems: ["not-sealed", "not-as-signed", "archive-unavailable", "signer-unavailable"],
  },
  "GET /v1/months/:log/:month/statement.html": {
    summary: "The statement as a page, its instants in a time zone that may be named",
    query: StatementSearch,
    success: { 200: { "text/html": Page } },
    problems: ["not-as-signed"],
  },
  "GET /v1/months/:log/:month/allocations": {
    summary: "How each namespace's usage of a closed month is split",
    query: AllocationSearch,
    success: { 200: json(AllocationPage) },
    problems: [],
  },
  "GET /v1/months/:log/:month/tieout": {
    summary:
      "Whether the month is the same in log, rollups, allocations, exports and with who bills",
    success: { 200: json(TieOut) },
    problems: ["exports-unavailable"],
  },
  "GET /v1/months/:log/:month/packs": {
    summary: "What became of each pack in a closed month",
    query: PackRollSearch,
    success: { 200: json(PackRollPage) },
    problems: [],
  },
} as const satisfies Readonly<Record<string, Operation>>;
