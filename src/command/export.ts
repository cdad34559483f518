/** `minutebook export` and `minutebook exports`: files for finance, asked for, waited for, fetched and checked. */
import { setTimeout as delay } from "node:timers/promises";
import { Argument, type Command, Option } from "commander";
import { EXPORT_NAMES, FORMATS } from "../core/export/tables.ts";
import type { ExportPage, ShownExport } from "../flow/export/read.ts";
import { type Api, ApiError, call } from "./api.ts";
import { exportPath } from "./download.ts";
import { intoBucket } from "./export-bucket.ts";
import { intoFolder, readMark, writeMark } from "./export-folder.ts";
import { apiOf, example, month, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";
import { type Progress, showProgress } from "./progress.ts";

const POLL_MS = 500;
const QUIET: Progress = { update: () => undefined, stop: () => undefined };

interface ExportOptions extends ServerOptions {
  log: string;
  out: string;
  format: string;
  month?: string;
  asOf?: string;
  from?: string;
  names?: true;
  creditMinutes?: string;
  focusVersion?: string;
}

export function exportCommand(): Command {
  return serverCommand(
    "export",
    "a file as of one entry, with its manifest, into a folder or bucket",
  )
    .addArgument(new Argument("<name>", "what it holds").choices(EXPORT_NAMES))
    .requiredOption("--log <id>", "the log")
    .requiredOption("--out <place>", "a folder, or s3://bucket/prefix?…")
    .addOption(new Option("--format <format>").choices(FORMATS).default("csv"))
    .option("--month <month>", "the billing month, as 2026-10", month)
    .option("--as-of <size>", "entries below this index count (default: all that is archived)")
    .option("--from <index>", "of entries: those from this index on")
    .option(
      "--names",
      "with the names of namespaces, projects and runners, which are not on the log",
    )
    .option("--credit-minutes <minutes>", "of portal: compute minutes that are one credit")
    .option("--focus-version <version>", "of focus: which version of the specification")
    .addHelpText("after", example("export portal --log 0a1b… --month 2026-10 --out exports"))
    .action(async (name: string, options: ExportOptions) => {
      const progress = process.stderr.isTTY ? showProgress("KiB") : QUIET;
      try {
        const file = await exported(options, askedFor(name, options), progress);
        progress.stop();
        print(options, file, [`${file.file}: ${file.bytes} bytes as of entry ${file.as_of}`]);
      } finally {
        progress.stop();
      }
    });
}

export function exportsCommand(): Command {
  return serverCommand("exports", "exports of a log, newest first")
    .requiredOption("--log <id>", "the log")
    .addHelpText("after", example("exports --log 0a1b…"))
    .action(async ({ log, ...options }: ServerOptions & { log: string }) => {
      const exports = await allOf(apiOf(options), log);
      const rows = exports.map((each) => [
        each.id,
        each.file,
        each.error === undefined ? each.state : `${each.state}: ${each.error}`,
        each.bytes,
        each.asked_at,
      ]);
      const lines = table(["export", "file", "", "bytes", "asked for"], rows);
      print(options, { log, exports }, lines);
    });
}

async function allOf(api: Api, log: string): Promise<ShownExport[]> {
  const all: ShownExport[] = [];
  for (let next: { before?: string } | undefined = {}; next !== undefined; ) {
    const path = `/v1/exports?${new URLSearchParams({ log, ...next })}`;
    const page: ExportPage = await call<ExportPage>(api, "GET", path);
    all.push(...page.exports);
    next = page.next === undefined ? undefined : { before: page.next };
  }
  return all;
}

function askedFor(name: string, options: ExportOptions): Record<string, unknown> {
  const { asOf, creditMinutes, focusVersion, format, from, log, month: of, names } = options;
  return {
    ...{ log, name, format },
    ...(of !== undefined && { month: of }),
    ...(asOf !== undefined && { as_of: asOf }),
    ...(from !== undefined && { from }),
    ...(names && { names }),
    ...(creditMinutes !== undefined && { credit_minutes: creditMinutes }),
    ...(focusVersion !== undefined && { focus_version: focusVersion }),
  };
}

/** What was asked for before in this folder, in the same words, and was not fetched to its end goes on. */
async function exported(
  options: ExportOptions,
  asked: Record<string, unknown>,
  progress: Progress,
): Promise<ShownExport> {
  const api = apiOf(options);
  const { out } = options;
  if (out.startsWith("s3:")) {
    const fresh = await call<ShownExport>(api, "POST", "/v1/exports", asked);
    return await intoBucket(api, await made(api, fresh, progress), out, progress);
  }
  const place = { out, asked };
  const before = await resumed(api, await readMark(place));
  const begun = before ?? (await call<ShownExport>(api, "POST", "/v1/exports", asked));
  await writeMark(place, begun);
  return await intoFolder(api, await made(api, begun, progress), place, progress);
}

async function resumed(
  api: Api,
  mark: { log: string; id: string } | undefined,
): Promise<ShownExport | undefined> {
  if (mark === undefined) return undefined;
  const found = await call<ShownExport>(api, "GET", exportPath(mark)).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  });
  return found?.state === "failed" ? undefined : found;
}

/** Also what failed: its manifest says why, when it is asked for. */
async function made(api: Api, begun: ShownExport, progress: Progress): Promise<ShownExport> {
  let now = begun;
  while (now.state === "pending") {
    progress.update("making", Math.floor(Number(now.bytes) / 1024));
    await delay(POLL_MS);
    now = await call<ShownExport>(api, "GET", exportPath(begun));
  }
  return now;
}
