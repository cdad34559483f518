/** `minutebook-audit check-export`: a file for finance, held to its manifest and to the log. */
import { type CheckedExport, checkExport } from "../export/check.ts";
import { fileAt } from "../export/file/rows.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook, FINDINGS } from "../finding.ts";
import { readFile, readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { openSpill } from "../spill.ts";
import { type AddCommand, type Exit, type Output, progressBar } from "./output.ts";
import { keysOf, openPlace } from "./place.ts";
import { trusting } from "./verify.ts";

interface CheckExportOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
  manifest: string;
  note: string;
  priceList?: string;
  json?: true;
}

const HELP = `
Every row is made again from the entries, by an implementation of its own, and compared in its order; so are
row count and control totals. The manifest must be signed as the log's, and name a root of its tree. Names
are on no log: they are not checked, which is said. The money of a FOCUS file is a price list's: with --price-list,
which must be the list of the manifest's prices_sha256, all of it is made again as well; without it, it is said what
was not checked. Whether the entries themselves are what agents signed is for verify to say.

Exit status: 0 the same as the log gives; 1 a finding, or the log is not what was signed; 2 could not look.

Example:
  minutebook-audit check-export portal.csv --manifest portal.manifest.json --note portal.manifest.note \\
    ./archive LOG --vkey ledger.vkey
  minutebook-audit check-export focus.csv --manifest focus.manifest.json --note focus.manifest.note \\
    --price-list prices.json ./archive LOG --vkey ledger.vkey
`;

export const addCheckExport: AddCommand = (program, output, done) => {
  trusting(program.command("check-export"))
    .description("check a file for finance against its manifest and the log")
    .argument("<file>", "the file, as it was exported")
    .argument("<archive>", "the archive's folder, or a log's address: https://HOST/logs/LOG")
    .argument("[log]", "the log's id, where the folder holds several")
    .requiredOption("--manifest <file>", "its manifest, to the byte")
    .requiredOption("--note <file>", "the manifest's hash under the log's keys")
    .option("--price-list <file>", "the price list that a FOCUS file was made with, to the byte")
    .option("--json", "print the outcome as JSON")
    .addHelpText("after", HELP)
    .action(
      async (
        file: string,
        archive: string,
        log: string | undefined,
        options: CheckExportOptions,
      ) => {
        done(await check(file, { archive, log, options }, output));
      },
    );
};

interface Asked {
  archive: string;
  log: string | undefined;
  options: CheckExportOptions;
}

async function check(
  file: string,
  { archive, log, options }: Asked,
  output: Output,
): Promise<Exit> {
  const { vkeys } = readTrust(options.vkey, options.policy);
  const place = await openPlace(archive, log, options.tokenFile);
  const [id = "", ...others] = place.logs;
  if (others.length > 0) throw new CannotLook(`${archive} holds several logs: name one of them`);
  const [manifest, note] = [readFile(options.manifest), readFile(options.note)];
  const priceList = options.priceList === undefined ? undefined : readFile(options.priceList);
  const spill = openSpill();
  const bar = progressBar(output, id, "bundles");
  try {
    const checked = await checkExport(await place.open(id), {
      ...{ log: id, file: fileAt(file), manifest, note },
      ...(priceList && { priceList }),
      ...{ vkeys: keysOf(id, vkeys), verify: verifyNow, hash: sha256, openPiles: spill.open },
      ...(bar && { onProgress: bar.update }),
    });
    output.out(options.json ? checkedJson(checked) : printChecked(checked));
    return checked.findings.count > 0 ? 1 : 0;
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    output.out(printable(`log ${id}\nFOUND: ${error.path}: ${error.code}: ${error.message}\n`));
    return 1;
  } finally {
    bar?.stop();
    spill.close();
  }
}

function printChecked({ findings, manifest, missed, unchecked }: CheckedExport): string {
  const { as_of = "", log = "", name = "", parameters, rows = "" } = manifest ?? {};
  const month = parameters?.month === undefined ? "" : ` of ${parameters.month.slice(0, 7)}`;
  const lines = [
    ...(manifest === undefined ? [] : [`${name}${month} of log ${log}, as of ${as_of}`]),
    findings.count === 0
      ? `SAME: ${rows} rows follow from the log's entries`
      : `FOUND: ${findings.count} differences`,
    ...findings.listed.map(({ code, detail }) => `  ${code}: ${detail} (${FINDINGS[code]})`),
    ...(findings.count > findings.listed.length ? ["  and more"] : []),
    ...(missed === undefined ? [] : [`  not looked at to the end: ${missed}`]),
    ...unchecked.map(({ columns, why }) => `NOT CHECKED, for ${why}: ${columns.join(", ")}`),
  ];
  return `${printable(lines.join("\n"))}\n`;
}

function checkedJson({ findings, manifest, missed, unchecked }: CheckedExport): string {
  const listed = findings.listed.map(({ code, detail }) => ({ code, detail }));
  const document = {
    exit: findings.count > 0 ? 1 : 0,
    ...(manifest && { manifest }),
    ...(missed !== undefined && { could_not_look: missed }),
    unchecked,
    findings: { count: findings.count, listed },
  };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}
