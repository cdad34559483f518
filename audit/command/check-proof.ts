/** `minutebook-audit check-proof`: what a proof's file proves, offline. */
import type { Command } from "commander";
import { z } from "zod";
import { decodeUtf8 } from "../../src/core/text.ts";
import { parseTlogProof } from "../../src/core/tlog-proof.ts";
import { secondsNow } from "../clock.ts";
import { CannotLook } from "../finding.ts";
import { readFile, readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { checkProof, type Expected } from "../proof/check.ts";
import { checkedJson, exitOfChecked, printChecked } from "../proof/print.ts";
import { type AddCommand, collect, type Exit, type Output } from "./output.ts";
import { wholeNumber } from "./range.ts";

interface CheckProofOptions {
  vkey: string[];
  policy?: string;
  keyProof?: string;
  job?: string;
  namespace?: bigint;
  json?: true;
}

const HELP = `
It is proven that the build's entry is in the log, at its index, under a checkpoint that the log's key has
signed, and, with --policy, that enough witnesses have; that the charge is duration times factor; and, with
--key-proof, that the runner's key signed the report. Not proven, for that takes the whole log (verify):
that the factor is the right one, and that neither the runner's key was revoked before nor the checkpoint's retired.

Exit status: 0 proven, 1 a finding, 2 could not look: also where the checkpoint is by no given key.

Example:
  minutebook-audit check-proof job-4711.tlog-proof --vkey ledger.vkey --key-proof key.tlog-proof
`;

export const addCheckProof: AddCommand = (program, output, done) => {
  describing(program.command("check-proof"))
    .description("check one build's proof, without a network, and print the build")
    .argument("<file>", "the proof, as prove or GET /v1/jobs/LOG/ID give it")
    .addHelpText("after", HELP)
    .action(async (file: string, options: CheckProofOptions) => {
      done(await check(file, options, output));
    });
};

function describing(command: Command): Command {
  return command
    .option("--vkey <text or file>", "the log's key; may come again", collect, [])
    .option("--policy <file>", "trusted logs, witnesses and their quorum (C2SP tlog-policy)")
    .option("--key-proof <file>", "the proof of the entry that enrolled the runner's key")
    .option("--job <file>", "an answer of GET /v1/jobs/LOG/ID: what it says must be the entry's")
    .option("--namespace <id>", "the namespace that the build must be of", wholeNumber)
    .option("--json", "print the outcome as JSON");
}

async function check(file: string, options: CheckProofOptions, output: Output): Promise<Exit> {
  const { policy, vkeys } = readTrust(options.vkey, options.policy);
  if (vkeys.length === 0)
    throw new CannotLook("whose log is it? give its key by --vkey or --policy");
  const text = readText(file);
  const { job, keyProof, namespace } = options;
  const checked = await checkProof(text, {
    vkeys,
    policy,
    now: secondsNow(),
    hash: sha256,
    verify: verifyNow,
    keyProof: keyProof === undefined ? undefined : readText(keyProof),
    expected: {
      ...(job !== undefined && expectedOf(job, parseTlogProof(text)?.index)),
      ...(namespace !== undefined && { namespace: String(namespace) }),
    },
  });
  if (options.json) output.out(`${JSON.stringify(checkedJson(checked), undefined, 2)}\n`);
  else output.out(printChecked(checked));
  return exitOfChecked(checked);
}

/** Bytes that are no text are no proof either, and the check says so. */
function readText(path: string): string {
  return decodeUtf8(readFile(path)) ?? "";
}

const JobAnswer = z.object({
  log: z.string(),
  usages: z
    .array(
      z.object({
        index: z.string(),
        report: z.object({
          job: z.object({ id: z.string(), project_id: z.string(), root_namespace_id: z.string() }),
        }),
        rating: z.object({ duration_ms: z.string(), factor: z.string(), compute_ms: z.string() }),
      }),
    )
    .min(1),
});

/** Of a job's usages that of the proof's index; where none is, the first, which then differs. */
function expectedOf(file: string, index: bigint | undefined): Expected {
  const answer = JobAnswer.safeParse(parse(readText(file))).data;
  const own = answer?.usages.find((usage) => usage.index === String(index)) ?? answer?.usages[0];
  if (answer === undefined || own === undefined) {
    throw new CannotLook(`${file} is no answer of GET /v1/jobs/LOG/ID`);
  }
  const { id, project_id, root_namespace_id } = own.report.job;
  const { compute_ms, duration_ms, factor } = own.rating;
  const job = { job: id, project: project_id, namespace: root_namespace_id };
  return { log: answer.log, index: own.index, ...job, duration_ms, factor, compute_ms };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // not JSON, so no answer
  }
}
