/** What is signed of an export: what was asked for, as of which entry, what is in it, and its hash. */
import { z } from "zod";
import { canonical } from "../json.ts";
import { signedText } from "../signed-text.ts";
import {
  HashText,
  InstantText,
  IntegerText,
  LogId,
  MonthText,
  NonEmptyText,
  Platform,
  PositiveText,
} from "../unit.ts";
import { EXPORT_NAMES, type ExportName, FORMATS } from "./tables.ts";

/** What an export is asked for with, beside its name, its format and as of what. */
export const Parameters = z.strictObject({
  /** Entries from this index on; of `entries` alone. */
  from: IntegerText.exactOptional(),
  /** The billing month. */
  month: MonthText.exactOptional(),
  /** With the names of namespaces, projects and runners, which are no part of the log. */
  names: z.literal(true).exactOptional(),
  /** Compute minutes that are one credit: a figure that is derived besides. */
  credit_minutes: PositiveText.exactOptional(),
  /** Of the FOCUS specification. */
  focus_version: NonEmptyText.exactOptional(),
  /** Base64 SHA-256 of the price list that money comes from; without it there is none. */
  prices_sha256: HashText.exactOptional(),
});
export type Parameters = z.infer<typeof Parameters>;
type Member = keyof Parameters;

/** What a file is asked for with; a member that is not here it does not have. */
export const MEMBERS: Readonly<Record<ExportName, Partial<Record<Member, "needed" | "possible">>>> =
  {
    account_map: { names: "possible" },
    allocation: { month: "needed", names: "possible" },
    entries: { from: "possible", names: "possible" },
    focus: {
      month: "needed",
      names: "possible",
      focus_version: "possible",
      prices_sha256: "possible",
    },
    monthly_hosted_runner: { month: "possible", names: "possible" },
    monthly_namespace: { month: "possible", names: "possible" },
    monthly_project: { month: "possible", names: "possible" },
    pack_rollforward: { month: "needed", names: "possible" },
    portal: { month: "needed", names: "possible", credit_minutes: "possible" },
  };

export const Manifest = z.strictObject({
  as_of: IntegerText,
  bytes: IntegerText,
  /** Archived, and covers all that the export is of. */
  checkpoint: z.strictObject({ root: HashText, size: IntegerText }),
  columns: z.array(NonEmptyText).min(1),
  created_at: InstantText,
  format: z.enum(FORMATS),
  /** Name and version of the program that made it. */
  generator: NonEmptyText,
  instance: z.strictObject({ platform: Platform, unique_id: NonEmptyText }),
  log: LogId,
  name: z.enum(EXPORT_NAMES),
  parameters: Parameters,
  /** Entries from … to−1 are in it, or counted for it. */
  range: z.strictObject({ from: IntegerText, to: IntegerText }),
  rows: IntegerText,
  sha256: HashText,
  /** By column, its sum over all rows. */
  totals: z.record(NonEmptyText, z.string().regex(/^-?[0-9]+(?:\.[0-9]+)?$/)),
  v: z.literal("1"),
});
export type Manifest = z.infer<typeof Manifest>;

export function encodeManifest(manifest: Manifest): string {
  return canonical(manifest);
}

/**
 * What is signed for an export. The first line is no origin of a log, so that it is no checkpoint's text.
 *
 * @param json as `encodeManifest` gives it
 * @throws Error on an origin with a line break, which would be read as another
 */
export function exportText(origin: string, name: string, json: string): string {
  return signedText({ form: "export", name, origin }, json);
}
