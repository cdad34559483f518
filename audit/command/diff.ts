/** `minutebook-audit diff`: are two copies the same log? */
import { type Copy, difference } from "../fetch/difference.ts";
import { newest } from "../fetch/newest.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import { readTrust } from "../given.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import type { Source } from "../source.ts";
import { memoryPiles } from "../tally/memory.ts";
import { type AddCommand, type Exit, type Output, worst } from "./output.ts";
import { keysOf, openOne } from "./place.ts";
import { trusting } from "./verify.ts";

interface DiffOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
}

const HELP = `
That one copy goes on where the other ends is no difference. Where entries differ and both copies are
what their checkpoints say, the log has shown two truths: both checkpoints are printed, as evidence.

Exit status: 0 the same log, 1 they differ, or one is not what was signed, 2 could not look.

Example:
  minutebook-audit diff ./archive/LOG https://ledger.example/logs/LOG --vkey ledger.vkey
`;

export const addDiff: AddCommand = (program, output, done) => {
  trusting(program.command("diff"))
    .description("compare two copies of one log")
    .argument("<a>", "a log's folder, or its address: https://HOST/logs/LOG")
    .argument("<b>", "the other copy")
    .addHelpText("after", HELP)
    .action(async (a: string, b: string, options: DiffOptions) => {
      done(await diff(a, b, options, output));
    });
};

async function diff(a: string, b: string, options: DiffOptions, output: Output): Promise<Exit> {
  const { vkeys } = readTrust(options.vkey, options.policy);
  const places = [
    await openOne(a, options.tokenFile),
    await openOne(b, options.tokenFile),
  ] as const;
  const [{ log }, other] = places;
  if (other.log !== log) throw new CannotLook(`two logs: ${log} and ${other.log}`);
  const own = keysOf(log, vkeys);
  try {
    const left = await copyOf(a, places[0].source, own);
    const right = await copyOf(b, other.source, own);
    return await compare(log, [left, right], output);
  } catch (error) {
    if (!(error instanceof NotProven)) throw error;
    output.out(printable(`FOUND: ${error.path}: ${error.code}: ${error.message}\n`));
    return 1;
  }
}

async function copyOf(
  name: string,
  source: Source,
  vkeys: ReturnType<typeof readTrust>["vkeys"],
): Promise<Copy> {
  const checkpoint = await newest(source, { vkeys, verify: verifyNow, openPiles: memoryPiles });
  if (checkpoint === undefined) throw new CannotLook(`${name} has no checkpoint`);
  return { name, source, checkpoint };
}

async function compare(log: string, [a, b]: [Copy, Copy], output: Output): Promise<Exit> {
  const { index, unsigned } = await difference(a, b, sha256);
  const lines = [`log ${log}`];
  const exits: Exit[] = [];
  for (const { checkpoint, name } of [a, b]) lines.push(`  ${name}: ${checkpoint.size} entries`);
  for (const { checkpoint, name } of unsigned) {
    exits.push(1);
    lines.push(`FOUND: ${name}: its entries do not give the root signed for ${checkpoint.size}`);
  }
  if (index !== undefined) {
    exits.push(1);
    lines.push(`FOUND: entry ${index} is the first that differs`);
    if (unsigned.length === 0) lines.push(...evidence([a, b]));
  }
  if (exits.length === 0) lines.push("SAME: of both, all entries that both have");
  output.out(printable(`${lines.join("\n")}\n`));
  return worst(exits);
}

function evidence(copies: readonly Copy[]): string[] {
  return [
    "Both are signed, and contradict each other: a split view. Keep them as evidence.",
    ...copies.map(({ checkpoint, name }) => `---- ${name} ----\n${checkpoint.note}`),
  ];
}
