/** `minutebook check`: the database against the bytes that were hashed. */
import { existsSync, readFileSync } from "node:fs";
import type { Command } from "commander";
import { readSurroundings } from "../config.ts";
import { formatVkey, parseVkey, type Vkey } from "../core/note.ts";
import { rawPublicKey, readSigningKey } from "../custody.ts";
import { type CheckOptions, check } from "../flow/check/check.ts";
import type { Summary } from "../flow/check/event.ts";
import { sha256, verifySignature } from "../flow/report/signature.ts";
import type { Sql } from "../store/connect.ts";
import { placeOf, withDatabase } from "./database.ts";
import { CommandError } from "./failure.ts";
import { Findings } from "./findings.ts";
import { collect, type DataOptions, dataCommand, example } from "./option.ts";
import { print } from "./print.ts";
import { showProgress } from "./progress.ts";

interface CheckCommandOptions extends DataOptions {
  vkey?: string[];
}

interface Checked {
  summary: Summary;
  found: Findings;
}

export function checkCommand(): Command {
  return dataCommand(
    "check",
    "derive every column anew from the entries' bytes, and compare",
    "READER_DATABASE_URL",
  )
    .option(
      "--vkey <text or file>",
      "a log's key: checkpoints must be signed by one that was given; may come again " +
        "(default: of a data folder, its own keys under SERVICE_NAME)",
      collect,
    )
    .addHelpText(
      "after",
      example(
        "check --data data",
        "0 all proven, 1 a finding, 2 could not look: also when there was nothing, an entry of a " +
          "kind that this version does not know, or a checkpoint and no --vkey",
      ),
    )
    .action(async (options: CheckCommandOptions) => {
      const checking = { hash: sha256, ...notaryOf(options) };
      const checked = await withDatabase("reader", options, (sql) => runCheck(sql, checking));
      print(options, documentOf(checked), linesOf(checked));
      process.exitCode = checked.summary.exit;
    });
}

async function runCheck(sql: Sql, options: CheckOptions): Promise<Checked> {
  const found = new Findings();
  const progress = showProgress("entries");
  try {
    for await (const event of check({ sql }, options)) {
      if (event.kind === "summary") return { summary: event, found };
      if (event.kind === "progress") {
        progress.update(event.log, Number(event.index), Number(event.size));
      } else if (event.kind === "finding") found.add(event);
    }
  } finally {
    progress.stop();
  }
  throw new Error("check: it ended without a summary");
}

/** The keys that were given; else, of a data folder, those that its service signs with. */
function notaryOf({ data, vkey: texts }: CheckCommandOptions): Pick<CheckOptions, "notary"> {
  const vkeys = texts === undefined ? ownVkeys(data) : givenVkeys(texts);
  return vkeys === undefined ? {} : { notary: { verify: verifySignature, vkeys } };
}

type Vkeys = (log: string) => Vkey[];

function givenVkeys(texts: readonly string[]): Vkeys {
  const vkeys = texts.flatMap(readVkeys);
  // A key's name is the log's origin, and one log's key says nothing about another's notes.
  return (log) => vkeys.filter(({ name }) => name.endsWith(`/${log}`));
}

function ownVkeys(data: string | undefined): Vkeys | undefined {
  const place = placeOf("reader", data);
  if ("url" in place || !existsSync(place.keys.log)) return undefined;
  const files = [place.keys.log, place.keys.nextLog].filter((file) => existsSync(file));
  const keys = files.map((file) => rawPublicKey(readSigningKey(file)));
  const { serviceName } = readSurroundings();
  return (log) =>
    keys
      .map((key) => parseVkey(formatVkey(`${serviceName}/${log}`, key)))
      .filter((vkey) => vkey !== undefined);
}

/** A key's text, or a file with one on each line. */
function readVkeys(textOrFile: string): Vkey[] {
  const given = existsSync(textOrFile) ? readFileSync(textOrFile, "utf8") : textOrFile;
  return given
    .trim()
    .split(/\r?\n/)
    .map((line) => {
      const vkey = parseVkey(line);
      if (vkey !== undefined) return vkey;
      throw new CommandError("unreadable-file", `--vkey ${textOrFile}: no key and no file of keys`);
    });
}

function documentOf({ summary, found }: Checked): object {
  const { exit, logs, entries, findings: count, unread, unsigned } = summary;
  const { listed, tables } = found;
  return { exit, logs, entries, unread, unsigned, findings: { count, tables, listed } };
}

function linesOf({ summary, found }: Checked): string[] {
  const { exit, logs, entries, findings, unread, unsigned } = summary;
  return [
    ...found.lines(),
    ...(unread > 0 ? [`${unread} entries are of a kind that this version does not know`] : []),
    ...(unsigned > 0
      ? [`${unsigned} checkpoints: who signed them was not looked at (--vkey)`]
      : []),
    `${VERDICT[exit]}: logs ${logs}, entries ${entries}, findings ${findings}.`,
  ];
}

const VERDICT = { 0: "PROVEN", 1: "FOUND", 2: "OPEN" } as const;
