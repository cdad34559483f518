/** `minutebook-audit report`: whose a signed outcome is, and what it says. */
import { z } from "zod";
import { decodeUtf8 } from "../../src/core/text.ts";
import { isWithin, type Period, readPeriod } from "../control/decisions.ts";
import { CannotLook } from "../finding.ts";
import { readFile, readVkeys } from "../given.ts";
import { verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { readReport } from "../report.ts";
import { type AddCommand, COULD_NOT_LOOK, type Exit } from "./output.ts";

const HELP = `
Exit status: what the report says that its audit ended with; 2 where the report is not by that key.

Examples:
  minutebook-audit report november.jws --vkey auditor.vkey
  minutebook-audit report year.jws --vkey auditor.vkey --decided 2026-01-01..2027-01-01
`;

export const addReport: AddCommand = (program, output, done) => {
  program
    .command("report")
    .description("check a signed outcome of verify, and print it")
    .argument("<file>", "what verify --sign has written")
    .requiredOption("--vkey <text or file>", "the auditor's key")
    .option(
      "--decided <from..to>",
      "print only what was decided on these days, half-open, and by whom",
      readPeriod,
    )
    .addHelpText("after", HELP)
    .action((file: string, { decided, vkey }: { decided?: Period; vkey: string }) => {
      const payload = payloadOf(file, vkey);
      const whole = JSON.stringify(payload, undefined, 2);
      output.out(`${printable(decided === undefined ? whole : decisionsIn(payload, decided))}\n`);
      done(exitSaid(payload["exit"]));
    });
};

const Logs = z.array(
  z.object({
    log: z.string(),
    /** Absent where the log could not be looked at. */
    decisions: z
      .object({ count: z.string(), listed: z.array(z.record(z.string(), z.string())) })
      .default({ count: "0", listed: [] }),
  }),
);

/** A line for each decision; that not all of them are in the report is said. */
function decisionsIn({ logs }: { [name: string]: unknown }, period: Period): string {
  const read = Logs.safeParse(logs);
  if (!read.success) throw new CannotLook("the report says nothing of decisions");
  return read.data
    .flatMap(({ decisions: { count, listed }, log }) => [
      `log ${log}`,
      ...listed.filter(({ at = "" }) => isWithin(period, at)).map(decisionLine),
      ...(count === String(listed.length) ? [] : [`  only the last ${listed.length} of ${count}`]),
    ])
    .join("\n");
}

function decisionLine(said: Readonly<Record<string, string>>): string {
  const { action, at, decider, index, outcome, proposal, proposer, reason, ticket } = said;
  const who = `proposed by ${proposer} (entry ${proposal}), ${outcome} by ${decider}`;
  return `  ${at} entry ${index} ${action}: ${who}; ${reason}, ${ticket}`;
}

function payloadOf(file: string, vkey: string): { [name: string]: unknown } {
  const text = decodeUtf8(readFile(file))?.trimEnd() ?? "";
  const [key, ...others] = readVkeys(vkey);
  if (key === undefined || others.length > 0) throw new CannotLook("one key signs a report");
  const read = readReport(text, key.publicKey, verifyNow);
  if ("problem" in read) throw new CannotLook(`${file} is no report by that key: ${read.problem}`);
  return read.payload;
}

function exitSaid(exit: unknown): Exit {
  if (exit === "0") return 0;
  return exit === "1" ? 1 : COULD_NOT_LOOK;
}
