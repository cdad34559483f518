/** Exports: files as of one entry, their manifests, and where they stand. */
import { z } from "zod";
import { Manifest } from "../../core/export/manifest.ts";
import { REASONS } from "../../flow/export/read.ts";
import { Export, ExportPage } from "../answers/exports.ts";
import { json, type Operation, text } from "./operation.ts";
import { ExportSearch, LogExport } from "./shapes.ts";

/** C2SP signed-note. */
const Note = z.string().regex(/^\S+\/export\n/);
/** In one of its formats (docs/exports.md). */
const File = {
  "text/csv": z.string(),
  "application/x-ndjson": z.string(),
  "application/vnd.apache.parquet": z.string().describe("Bytes"),
};

const UNMADE = ["export-pending", "export-failed", "exports-unavailable", ...REASONS] as const;

export const EXPORTS = {
  "POST /v1/exports": {
    summary: "Ask for a file as of one entry; it is made behind the answer",
    body: json(LogExport),
    success: { 202: json(Export) },
    problems: ["not-sealed"],
  },
  "GET /v1/exports": {
    summary: "Exports of a log, newest first",
    query: ExportSearch,
    success: { 200: json(ExportPage) },
    problems: [],
  },
  "GET /v1/exports/:log/:export": {
    summary: "One export, and how far it is",
    success: { 200: json(Export) },
    problems: [],
  },
  "GET /v1/exports/:log/:export/manifest": {
    summary: "What is in the file, as canonical JSON",
    success: { 200: json(Manifest) },
    problems: UNMADE,
  },
  "GET /v1/exports/:log/:export/manifest.note": {
    summary: "The manifest's hash, signed by the log's keys",
    success: { 200: text(Note) },
    problems: [...UNMADE, "signer-unavailable"],
  },
  "GET /v1/exports/:log/:export/file": {
    summary: "The file, or with Range what of it is missing",
    success: { 200: File, 206: File },
    problems: [...UNMADE, "range-not-satisfiable"],
  },
} as const satisfies Readonly<Record<string, Operation>>;
