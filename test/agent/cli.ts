/** The agent's commands as a process of their own, for tests that kill it, limit it, or read its lines. */
import { Command } from "commander";
import { agentCommand } from "../../src/agent/command.ts";

await new Command("minutebook").addCommand(agentCommand()).parseAsync();
