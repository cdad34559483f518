/** What became of exports. */
import { z } from "zod";
import { Parameters } from "../../core/export/manifest.ts";
import { EXPORT_NAMES, FORMATS } from "../../core/export/tables.ts";
import { InstantText, IntegerText, LogId } from "../../core/unit.ts";
import type * as read from "../../flow/export/read.ts";
import { ExportId } from "../operations/shapes.ts";
import { exactly } from "./exactly.ts";

export const Export = exactly<read.ShownExport>()(
  z.strictObject({
    log: LogId,
    id: ExportId,
    file: z.string(),
    name: z.enum(EXPORT_NAMES),
    format: z.enum(FORMATS),
    parameters: Parameters,
    as_of: IntegerText,
    asked_at: InstantText,
    state: z.enum(["pending", "done", "failed"]),
    bytes: IntegerText,
    ended_at: InstantText.exactOptional(),
    error: z.string().exactOptional(),
  }),
);

export const ExportPage = exactly<read.ExportPage>()(
  z.strictObject({
    log: LogId,
    exports: z.array(Export),
    next: IntegerText.exactOptional(),
  }),
);
