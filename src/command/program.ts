/** The program `minutebook`: all commands, and one way to fail for all of them. */
import { Command } from "commander";
import { agentCommand } from "../agent/command.ts";
import { VERSION } from "../version.ts";
import { accessCommand } from "./access.ts";
import { adoptArchiveCommand } from "./adopt-archive.ts";
import { approveCommand } from "./approve.ts";
import { bootstrapCommand } from "./bootstrap.ts";
import { cardCommand } from "./card.ts";
import { checkCommand } from "./check.ts";
import { classCommand } from "./class.ts";
import { creditRunCommand } from "./credit-run.ts";
import { endingOf } from "./ending.ts";
import { enrolCommand } from "./enrol.ts";
import { exportCommand, exportsCommand } from "./export.ts";
import { feedCommand } from "./feed.ts";
import { keyCommand } from "./key.ts";
import { limitCommand } from "./limit.ts";
import { logCommand } from "./log.ts";
import { vkeyCommand } from "./log-key.ts";
import { migrateCommand } from "./migrate.ts";
import { monthCommand } from "./month.ts";
import { example } from "./option.ts";
import { packCommand } from "./pack.ts";
import { proposalsCommand } from "./proposals.ts";
import { proposeCommand } from "./propose.ts";
import { quotaCommand } from "./quota.ts";
import { rebuildCommand } from "./rebuild.ts";
import { reconcileCommand } from "./reconcile.ts";
import { recoverCommand } from "./recover.ts";
import { serveCommand } from "./serve.ts";
import { setupCommand } from "./setup.ts";
import { demoCommand } from "./story.ts";
import { tieOutCommand } from "./tie-out.ts";
import { tokenCommand } from "./token.ts";
import { usageCommand } from "./usage.ts";
import { verificationCommand } from "./verification.ts";
import { whatIfCommand } from "./what-if.ts";

const STATUSES = "0 done, 1 refused or a finding, 2 could not be asked; each command says its own";

export function minutebook(): Command {
  const program = new Command("minutebook")
    .description("The system of record for CI compute usage")
    .version(VERSION)
    .addHelpText("after", example("check --data data", STATUSES));
  const commands = [
    demoCommand(),
    serveCommand(),
    agentCommand().addHelpText("after", example("agent status --state agent")),
    migrateCommand(),
    bootstrapCommand(),
    setupCommand(),
    logCommand(),
    enrolCommand(),
    keyCommand(),
    vkeyCommand(),
    cardCommand(),
    classCommand(),
    limitCommand(),
    packCommand(),
    monthCommand(),
    proposeCommand(),
    approveCommand(),
    proposalsCommand(),
    tokenCommand(),
    usageCommand(),
    creditRunCommand(),
    whatIfCommand(),
    quotaCommand(),
    reconcileCommand(),
    exportCommand(),
    exportsCommand(),
    feedCommand(),
    tieOutCommand(),
    checkCommand(),
    accessCommand(),
    verificationCommand(),
    rebuildCommand(),
    recoverCommand(),
    adoptArchiveCommand(),
  ];
  for (const command of commands) program.addCommand(command);
  alike(program);
  return program;
}

/** Runs one command; what went wrong is one line on standard error, and the process's exit status. */
export async function run(args: readonly string[]): Promise<void> {
  try {
    await minutebook().parseAsync(args, { from: "user" });
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
