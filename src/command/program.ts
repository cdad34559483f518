/** The program `minutebook`: all commands, and one way to fail for all of them. */
import { Command } from "commander";
import { VERSION } from "../version.ts";
import { endingOf } from "./ending.ts";
import { example } from "./option.ts";

/** By name, as help lists them. One is read when it is asked for: all of them take half a second. */
const COMMANDS: Record<string, () => Promise<Command>> = {
  demo: async () => (await import("./story.ts")).demoCommand(),
  serve: async () => (await import("./serve.ts")).serveCommand(),
  agent: async () =>
    (await import("../agent/command.ts"))
      .agentCommand()
      .addHelpText("after", example("agent status --state agent")),
  migrate: async () => (await import("./migrate.ts")).migrateCommand(),
  bootstrap: async () => (await import("./bootstrap.ts")).bootstrapCommand(),
  setup: async () => (await import("./setup.ts")).setupCommand(),
  log: async () => (await import("./log.ts")).logCommand(),
  enrol: async () => (await import("./enrol.ts")).enrolCommand(),
  key: async () => (await import("./key.ts")).keyCommand(),
  vkey: async () => (await import("./log-key.ts")).vkeyCommand(),
  card: async () => (await import("./card.ts")).cardCommand(),
  class: async () => (await import("./class.ts")).classCommand(),
  limit: async () => (await import("./limit.ts")).limitCommand(),
  pack: async () => (await import("./pack.ts")).packCommand(),
  month: async () => (await import("./month.ts")).monthCommand(),
  propose: async () => (await import("./propose.ts")).proposeCommand(),
  approve: async () => (await import("./approve.ts")).approveCommand(),
  proposals: async () => (await import("./proposals.ts")).proposalsCommand(),
  token: async () => (await import("./token.ts")).tokenCommand(),
  usage: async () => (await import("./usage.ts")).usageCommand(),
  "credit-run": async () => (await import("./credit-run.ts")).creditRunCommand(),
  "what-if": async () => (await import("./what-if.ts")).whatIfCommand(),
  quota: async () => (await import("./quota.ts")).quotaCommand(),
  reconcile: async () => (await import("./reconcile.ts")).reconcileCommand(),
  export: async () => (await import("./export.ts")).exportCommand(),
  exports: async () => (await import("./export.ts")).exportsCommand(),
  feed: async () => (await import("./feed.ts")).feedCommand(),
  tieout: async () => (await import("./tie-out.ts")).tieOutCommand(),
  check: async () => (await import("./check.ts")).checkCommand(),
  access: async () => (await import("./access.ts")).accessCommand(),
  verification: async () => (await import("./verification.ts")).verificationCommand(),
  rebuild: async () => (await import("./rebuild.ts")).rebuildCommand(),
  recover: async () => (await import("./recover.ts")).recoverCommand(),
  "adopt-archive": async () => (await import("./adopt-archive.ts")).adoptArchiveCommand(),
};

const STATUSES = "0 done, 1 refused or a finding, 2 could not be asked; each command says its own";

/** @param asked a command's name: that one alone; all of them when none has it */
export async function minutebook(asked?: string): Promise<Command> {
  const program = new Command("minutebook")
    .description("The system of record for CI compute usage")
    .version(VERSION)
    .addHelpText("after", example("check --data data", STATUSES));
  const one = asked !== undefined && Object.hasOwn(COMMANDS, asked) ? COMMANDS[asked] : undefined;
  const makers = one === undefined ? Object.values(COMMANDS) : [one];
  for (const make of makers) program.addCommand(await make());
  alike(program);
  return program;
}

/** Runs one command; what went wrong is one line on standard error, and the process's exit status. */
export async function run(args: readonly string[]): Promise<void> {
  try {
    const program = await minutebook(args[0]);
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    const { line, status } = endingOf(error);
    if (line !== undefined) process.stderr.write(`${line}\n`);
    process.exitCode = status;
  }
}

/** Commander hands settings down only to commands that it made itself. */
function alike(command: Command): void {
  command.exitOverride().configureOutput({
    outputError: (text, write) => write(text.replace(/^error: /, "invalid-usage: ")),
  });
  for (const below of command.commands) alike(below);
}
