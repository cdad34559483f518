/** The command line `minutebook-audit`: one file beside this one for each of its commands. */
import { Command, CommanderError } from "commander";
import { COULD_NOT_LOOK, type Exit, type Output, reason } from "./output.ts";

type Add = (program: Command, output: Output, done: (exit: Exit) => void) => void;

/** Read when they are asked for: all together they take as long as an audit of a thousand entries. */
const COMMANDS: Readonly<Record<string, () => Promise<Add>>> = {
  verify: async () => (await import("./verify.ts")).addVerify,
  bundle: async () => (await import("./bundle.ts")).addBundle,
  diff: async () => (await import("./diff.ts")).addDiff,
  report: async () => (await import("./report.ts")).addReport,
  prove: async () => (await import("./prove.ts")).addProve,
  "check-proof": async () => (await import("./check-proof.ts")).addCheckProof,
  "check-export": async () => (await import("./check-export.ts")).addCheckExport,
  statement: async () => (await import("./statement.ts")).addStatement,
  evidence: async () => (await import("./evidence.ts")).addEvidence,
  watch: async () => (await import("./watch.ts")).addWatch,
  witness: async () => (await import("./witness.ts")).addWitness,
};

/** Runs the arguments after the program's name; resolves to the exit status. */
export async function run(args: readonly string[], output: Output): Promise<Exit> {
  let exit: Exit = 0;
  const program = new Command("minutebook-audit")
    .description("Checks Minutebook logs without trusting who serves them")
    .exitOverride()
    .configureOutput({ writeOut: output.out, writeErr: output.err });
  for (const command of named(args[0])) {
    (await command())(program, output, (status) => {
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

/** The one command that is named; all of them where none is, for help and for what is only nearly a name. */
function named(name = ""): (() => Promise<Add>)[] {
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  return command === undefined ? Object.values(COMMANDS) : [command];
}
