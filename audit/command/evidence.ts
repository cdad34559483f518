/** `minutebook-audit evidence`: extracts for the controls of a period, from the log alone. */
import { createHash } from "node:crypto";
import { type Command, InvalidArgumentError } from "commander";
import { DayText } from "../../src/core/body.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { formatVkey, type Vkey } from "../../src/core/note.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { readEntry } from "../archive/block.ts";
import { EvidenceFolder } from "../extract/folder.ts";
import { newest } from "../fetch/newest.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import { readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { signReport } from "../report.ts";
import { readSigningKey, type SigningKey } from "../signing-key.ts";
import type { Source } from "../source.ts";
import { openSpill } from "../spill.ts";
import { readAll } from "../statement/read.ts";
import { reproduce } from "../statement/reproduce.ts";
import { readVersion } from "../version.ts";
import { type AddCommand, type Exit, type Output, progressBar } from "./output.ts";
import { keysOf, openPlace } from "./place.ts";
import { trusting } from "./verify.ts";

interface EvidenceOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
  from: string;
  to: string;
  out: string;
  key?: string;
}

const HELP = `
Rows come from entries under the newest checkpoint that a given key has signed; whether these are as they
must be is for verify to say. docs/controls.md names the controls, docs/audit.md the files and their columns.

Exit status: 0 written, 1 the log is not what was signed, 2 could not look.

Example:
  minutebook-audit evidence ./archive LOG --vkey ledger.vkey --from 2026-01-01 --to 2027-01-01 \\
    --out evidence-2026 --key auditor.pem
`;

export const addEvidence: AddCommand = (program, output, done) => {
  named(trusting(program.command("evidence")))
    .addHelpText("after", HELP)
    .action(async (archive: string, log: string | undefined, options: EvidenceOptions) => {
      done(await extract(archive, log, options, output));
    });
};

function named(command: Command): Command {
  return command
    .description("write what each control left on the log in a period, as files with a manifest")
    .argument("<archive>", "the archive's folder, or a log's address: https://HOST/logs/LOG")
    .argument("[log]", "the log's id, where the folder holds several")
    .requiredOption("--from <day>", "the first UTC day", day)
    .requiredOption("--to <day>", "the day after the last one", day)
    .requiredOption("--out <folder>", "a folder that is empty, or not there yet")
    .option("--key <file>", "sign the manifest with this Ed25519 key (PKCS #8 PEM)");
}

async function extract(
  archive: string,
  log: string | undefined,
  options: EvidenceOptions,
  output: Output,
): Promise<Exit> {
  const { from, key, out, to } = options;
  if (from >= to) throw new CannotLook(`${from} is not before ${to}`);
  const signer = key === undefined ? undefined : readSigningKey(key);
  const { vkeys } = readTrust(options.vkey, options.policy);
  const place = await openPlace(archive, log, options.tokenFile);
  const [id = "", ...others] = place.logs;
  if (others.length > 0) throw new CannotLook(`${archive} holds several logs: name one of them`);
  const writing = { period: { from, to }, vkeys: keysOf(id, vkeys), out, signer };
  try {
    const said = await write(await place.open(id), id, writing, output);
    output.out(printable(`${said}\n`));
    return 0;
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    output.out(printable(`log ${id}\nFOUND: ${error.path}: ${error.code}: ${error.message}\n`));
    return 1;
  }
}

interface Writing {
  period: { from: string; to: string };
  vkeys: readonly Vkey[];
  out: string;
  signer: SigningKey | undefined;
}

async function write(
  source: Source,
  log: string,
  { out, period, signer, vkeys }: Writing,
  output: Output,
): Promise<string> {
  const spill = openSpill();
  const bar = progressBar(output, log, "bundles");
  const reading = { vkeys, verify: verifyNow, hash: sha256, openPiles: spill.open };
  try {
    const checkpoint = await newest(source, reading);
    if (checkpoint === undefined) throw new CannotLook("there is no checkpoint");
    const { root, size } = checkpoint;
    const version = readVersion();
    const signed = { size: String(size), root: encodeBase64(root) };
    const folder = new EvidenceFolder(out, { log, period, version, checkpoint: signed });
    const closed: string[] = [];
    const onProgress = bar && { onProgress: bar.update };
    await readAll(source, { checkpoint, hash: sha256, ...onProgress }, (bytes) => {
      const entry = readEntry(bytes);
      if (entry === "malformed") throw new CannotLook("an entry cannot be read: verify says which");
      if (entry.kind === "unknown-kind") {
        throw new CannotLook(`entry ${entry.index} is of an unknown kind`);
      }
      folder.take(entry);
      const within = entry.at >= period.from && entry.at < period.to;
      if (entry.kind === "month_closed" && within) closed.push(entry.body.month);
    });
    for (const month of closed) {
      const statement = await reproduce(source, { ...reading, month });
      const what = `The statement of ${month.slice(0, 7)}, made again from the entries`;
      folder.add(`statement-${month.slice(0, 7)}.json`, statement, { what, controls: ["PC-1"] });
    }
    folder.add("checkpoint", checkpoint.note, { what: "What was signed", controls: ["IT-2"] });
    const files = folder.end();
    const about = { log, ...period, generator: "minutebook-audit", version, checkpoint: signed };
    const manifest = { ...about, exit: "0", signed: signer !== undefined, files };
    return sealed(folder, manifest, signer);
  } finally {
    bar?.stop();
    spill.close();
  }
}

/** The manifest last: a folder without one is not whole. */
function sealed(
  folder: EvidenceFolder,
  manifest: { [name: string]: Json } & { files: readonly Json[] },
  signer: SigningKey | undefined,
): string {
  const text = canonical(manifest);
  if (signer !== undefined) folder.seal("manifest.jws", signReport(manifest, signer));
  folder.seal("manifest.json", text);
  const digest = createHash("sha256").update(text).digest("base64");
  const whose =
    signer === undefined
      ? "unsigned: nobody answers for it"
      : `signed by ${formatVkey("minutebook-audit", signer.publicKey)}`;
  return `${manifest.files.length} files; manifest.json ${digest}, ${whose}`;
}

function day(text: string): string {
  if (DayText.safeParse(text).success) return text;
  throw new InvalidArgumentError("Expected a day such as 2026-01-01.");
}
