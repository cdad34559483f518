/** `minutebook-audit report`: whose a signed outcome is, and what it says. */
import { decodeUtf8 } from "../../src/core/text.ts";
import { CannotLook } from "../finding.ts";
import { readFile, readVkeys } from "../given.ts";
import { verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import { readReport } from "../report.ts";
import { type AddCommand, COULD_NOT_LOOK, type Exit } from "./output.ts";

const HELP = `
Exit status: what the report says that its audit ended with; 2 where the report is not by that key.

Example:
  minutebook-audit report november.jws --vkey auditor.vkey
`;

export const addReport: AddCommand = (program, output, done) => {
  program
    .command("report")
    .description("check a signed outcome of verify, and print it")
    .argument("<file>", "what verify --sign has written")
    .requiredOption("--vkey <text or file>", "the auditor's key")
    .addHelpText("after", HELP)
    .action((file: string, { vkey }: { vkey: string }) => {
      const payload = payloadOf(file, vkey);
      output.out(`${printable(JSON.stringify(payload, undefined, 2))}\n`);
      done(exitSaid(payload["exit"]));
    });
};

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
