/** The command line `minutebook-audit`: one file beside this one for each of its commands. */
import { Command, CommanderError } from "commander";
import { addBundle } from "./bundle.ts";
import { addCheckExport } from "./check-export.ts";
import { addCheckProof } from "./check-proof.ts";
import { addDiff } from "./diff.ts";
import { addEvidence } from "./evidence.ts";
import { COULD_NOT_LOOK, type Exit, type Output, reason } from "./output.ts";
import { addProve } from "./prove.ts";
import { addReport } from "./report.ts";
import { addStatement } from "./statement.ts";
import { addVerify } from "./verify.ts";
import { addWatch } from "./watch.ts";
import { addWitness } from "./witness.ts";

const COMMANDS = [
  addVerify,
  addBundle,
  addDiff,
  addReport,
  addProve,
  addCheckProof,
  addCheckExport,
  addStatement,
  addEvidence,
  addWatch,
  addWitness,
];

/** Runs the arguments after the program's name; resolves to the exit status. */
export async function run(args: readonly string[], output: Output): Promise<Exit> {
  let exit: Exit = 0;
  const program = new Command("minutebook-audit")
    .description("Checks Minutebook logs without trusting who serves them")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err });
  for (const add of COMMANDS) {
    add(program, output, (status) => {
      exit = status;
    });
  }
  try {
    await program.parseAsync(args, { from: "user" });
    return exit;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : COULD_NOT_LOOK;
    output.err(`could not look: ${reason(error)}\n`);
    return COULD_NOT_LOOK;
  }
}
