/** `minutebook-audit verify`: audits log by log, and says how it went. */
import type { Command } from "commander";
import { isOriginOf, type Kept } from "../archive/checkpoints.ts";
import { secondsNow } from "../clock.ts";
import { type Period, readPeriod } from "../control/decisions.ts";
import type { IssuerKeys } from "../control/issuer-keys.ts";
import { auditRange, type Range } from "../fetch/range.ts";
import { CannotLook } from "../finding.ts";
import { readIssuerKeysOf, readKept, readTrust, readUsage, type Trust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { exitOf, printRange, printResult, rangeJson, resultJson } from "../print.ts";
import type { Source } from "../source.ts";
import { openSpill } from "../spill.ts";
import type { UsageFile } from "../tally/usage.ts";
import { openThreads } from "../threads.ts";
import { type AuditOptions, audit } from "../verify.ts";
import { documentOf, type Inputs, signDocument } from "./document.ts";
import {
  type AddCommand,
  COULD_NOT_LOOK,
  collect,
  type Exit,
  type Output,
  progressBar,
  reason,
  worst,
} from "./output.ts";
import { keysOf, openPlace, type Place } from "./place.ts";
import { type RangeOptions, rangeOf, ranging } from "./range.ts";
import { testSelf } from "./self.ts";

interface VerifyOptions extends RangeOptions {
  vkey: string[];
  policy?: string;
  checkpoint: string[];
  usage: string[];
  issuerKeys?: string;
  decided?: Period;
  tokenFile?: string;
  live?: true;
  json?: true;
  sign?: string;
  out?: string;
}

interface Given extends Trust {
  kept: readonly Kept[];
  usage: readonly UsageFile[];
  issuerKeys?: IssuerKeys;
  decided?: Period;
  live: boolean;
  range: Range | undefined;
}

/** How one log came off. */
interface Judged {
  exit: Exit;
  document: object;
  text: string;
}

const HELP = `
Exit status: 0 all proven, 1 a finding, 2 could not look, or something could not be judged.
An archive that proves nothing is never a pass.

An archive alone cannot show that its end, or one of its checkpoints, was taken away: keep a checkpoint
of every audit, and give it to the next one. Without <log>, each key given must have its log there.
Of a range (--from, --to) it is proven that its entries are in the log, and not what they say: that
takes all entries before them. A key that the log itself added, under a checkpoint that is trusted, is trusted from
there on.

Examples:
  minutebook-audit verify ./archive --vkey ledger.vkey --checkpoint october.note --usage november.json
  minutebook-audit verify https://ledger.example/logs/LOG --vkey ledger.vkey --token-file auditor.jwt
`;

export const addVerify: AddCommand = (program, output, done) => {
  ranging(trusting(program.command("verify")))
    .description("verify every entry of a log, or of all logs of an archive")
    .argument("<archive>", "the archive's folder, or a log's address: https://HOST/logs/LOG")
    .argument("[log]", "one log's id; all logs of the folder without it")
    .option(
      "--checkpoint <file>",
      "a checkpoint kept from earlier or from a witness: it must be in the tree; may come again",
      collect,
      [],
    )
    .option("--usage <file>", "an answer of GET /v1/usage, in JSON; may come again", collect, [])
    .option(
      "--issuer-keys <file>",
      "JWKS of the issuers by which approvers sign in: no other keys of theirs are taken",
    )
    .option("--decided <from..to>", "list only decisions of these days, half-open", readPeriod)
    .option("--live", "the log is being written: entries past the largest checkpoint are no matter")
    .option("--json", "print the outcome as JSON")
    .option("--sign <key>", "sign the outcome with this Ed25519 key (PKCS #8 PEM); needs --out")
    .option("--out <file>", "where the signed outcome goes")
    .addHelpText("after", HELP)
    .action(async (archive: string, log: string | undefined, options: VerifyOptions) => {
      done(await verifyArchive(archive, log, options, output));
    });
};

/** Whom to trust, and how to get in: alike for all commands that read a log. */
export function trusting(command: Command): Command {
  return command
    .option(
      "--vkey <text or file>",
      "a log's key, trusted from elsewhere; may come again",
      collect,
      [],
    )
    .option("--policy <file>", "trusted logs, witnesses and their quorum (C2SP tlog-policy)")
    .option("--token-file <file>", "a file with the bearer token for the log's server");
}

async function verifyArchive(
  archive: string,
  log: string | undefined,
  options: VerifyOptions,
  output: Output,
): Promise<Exit> {
  const sealed = signDocument(options);
  const range = rangeOf(options);
  const { checkpoint, decided, issuerKeys, usage } = options;
  const whole = checkpoint.length + usage.length > 0 || (issuerKeys ?? decided) !== undefined;
  if (range !== undefined && whole) {
    const names = "--checkpoint, --usage, --issuer-keys and --decided";
    throw new CannotLook(`${names} are held to whole logs, and not to a range`);
  }
  const self = await testSelf();
  const place = await openPlace(archive, log, options.tokenFile);
  const { logs } = place;
  const trust = readTrust(options.vkey, options.policy);
  const vkeys = trust.vkeys;
  const given: Given = {
    ...trust,
    kept: options.checkpoint.map((name) => readKept(name, { vkeys, verify: verifyNow }, logs)),
    usage: options.usage.map((name) => readUsage(name, logs)),
    ...(issuerKeys !== undefined && { issuerKeys: readIssuerKeysOf(issuerKeys) }),
    ...(decided && { decided }),
    live: options.live === true,
    range,
  };
  const { documents, exit } = await auditAll(archive, place, given, { options, output });
  const inputs: Inputs = { archive, vkeys, ...options };
  const document = documentOf({ self, inputs, logs: documents, exit });
  if (options.json) output.out(`${JSON.stringify(document, undefined, 2)}\n`);
  if (sealed !== undefined) output.err(sealed(document));
  return exit;
}

async function auditAll(
  archive: string,
  place: Place,
  given: Given,
  { options, output }: { options: VerifyOptions; output: Output },
): Promise<{ documents: object[]; exit: Exit }> {
  const exits: Exit[] = [];
  const documents: object[] = [];
  const missed = (log: string, why: string): void => {
    exits.push(COULD_NOT_LOOK);
    documents.push({ log, exit: COULD_NOT_LOOK, could_not_look: why });
    output.err(`log ${log}: could not look: ${why}\n`);
  };
  for (const log of place.logs) {
    try {
      const { document, exit, text } = await judge(await place.open(log), log, given, output);
      exits.push(exit);
      documents.push(document);
      if (!options.json) output.out(text);
    } catch (error) {
      missed(log, reason(error));
    }
  }
  // Else a log whose whole folder is gone would not be missed.
  for (const { name } of place.one ? [] : given.vkeys) {
    if (!place.logs.some((log) => isOriginOf(log, name))) {
      missed(name, `${archive} has no archive of it`);
    }
  }
  return { documents, exit: worst(exits) };
}

async function judge(source: Source, log: string, given: Given, output: Output): Promise<Judged> {
  const spill = openSpill();
  try {
    const trust = {
      ...{ verify: verifyNow, hash: sha256 },
      ...{ openPiles: spill.open, now: secondsNow() },
    };
    if (given.range === undefined)
      return await judgeLog(source, log, { ...given, ...trust }, output);
    const vkeys = keysOf(log, given.vkeys);
    const { policy, range } = given;
    const result = await auditRange(source, { ...trust, log, vkeys, policy, range });
    return { exit: exitOf(result), document: rangeJson(result), text: printRange(result) };
  } finally {
    spill.close();
  }
}

async function judgeLog(
  source: Source,
  log: string,
  given: Given & Pick<AuditOptions, "hash" | "now" | "openPiles" | "verify">,
  output: Output,
): Promise<Judged> {
  const threads = openThreads();
  const bar = progressBar(output, log, "entries");
  try {
    const result = await audit(source, {
      ...given,
      log,
      kept: given.kept.filter(({ checkpoint }) => isOriginOf(log, checkpoint.origin)),
      usage: given.usage.filter((file) => file.log === log),
      reader: threads,
      ...(bar && { onProgress: bar.update }),
    });
    return { exit: exitOf(result), document: resultJson(result), text: printResult(result) };
  } finally {
    bar?.stop();
    await threads.close();
  }
}
