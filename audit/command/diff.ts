/** `minutebook-audit diff`: are two copies the same log? */
import { equal } from "../../src/core/text.ts";
import { type Copy, difference } from "../fetch/difference.ts";
import { newest } from "../fetch/newest.ts";
import { NotProven } from "../fetch/proven.ts";
import { CannotLook } from "../finding.ts";
import { readTrust } from "../given.ts";
import { isSameServer, isUrl } from "../http/source.ts";
import { sha256, verifyNow } from "../native.ts";
import { printable } from "../print.ts";
import type { Source } from "../source.ts";
import { memoryPiles } from "../tally/memory.ts";
import {
  type AddCommand,
  COULD_NOT_LOOK,
  type Exit,
  type Output,
  reason,
  worst,
} from "./output.ts";
import { keysOf, openOne } from "./place.ts";
import { trusting } from "./verify.ts";

interface DiffOptions {
  vkey: string[];
  policy?: string;
  tokenFile?: string;
}

const HELP = `
That one copy goes on where the other ends is no difference. Where entries differ and both copies are
what their checkpoints say, the log has shown two truths: both checkpoints are printed, as evidence. So
they are where two roots are signed for one size, whatever the entries. A token goes to the server of the
first address, and to no other.

Exit status: 0 the same log, 1 they differ, or one is not what was signed, 2 could not look, or one of
them has no entry to compare.

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
  const [first = ""] = [a, b].filter(isUrl);
  // Another server could use the token at the first one.
  const tokenFor = (name: string): string | undefined =>
    isUrl(name) && isSameServer(name, first) ? options.tokenFile : undefined;
  const places = [await openOne(a, tokenFor(a)), await openOne(b, tokenFor(b))] as const;
  const [{ log }, other] = places;
  if (other.log !== log) throw new CannotLook(`two logs: ${log} and ${other.log}`);
  const own = keysOf(log, vkeys);
  try {
    const copies = [
      await copyOf(a, places[0].source, own),
      await copyOf(b, other.source, own),
    ] as const;
    const lines = [`log ${log}`];
    for (const { checkpoint, name } of copies) lines.push(`  ${name}: ${checkpoint.size} entries`);
    output.out(printable(`${lines.join("\n")}\n`));
    return await compare(copies, output);
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

type Copies = readonly [Copy, Copy];

async function compare(copies: Copies, output: Output): Promise<Exit> {
  const split = roots(copies, output);
  try {
    return worst([split, await entries(copies, output)]);
  } catch (error) {
    if (split === 0 || !(error instanceof CannotLook)) throw error;
    output.err(`could not look: ${reason(error)}\n`);
    return split;
  }
}

/** Said before any entry is asked for: whoever has two roots for one size needs none. */
function roots([a, b]: Copies, output: Output): Exit {
  const [{ root, size }, other] = [a.checkpoint, b.checkpoint];
  if (size !== other.size || equal(root, other.root)) return 0;
  output.out(printable(`FOUND: two roots are signed for ${size} entries\n${evidence([a, b])}`));
  return 1;
}

async function entries([a, b]: Copies, output: Output): Promise<Exit> {
  const { index, unsigned } = await difference(a, b, sha256);
  const lines: string[] = [];
  for (const { checkpoint, name } of unsigned) {
    lines.push(`FOUND: ${name}: its entries do not give the root signed for ${checkpoint.size}`);
  }
  if (index !== undefined) lines.push(`FOUND: entry ${index} is the first that differs`);
  const isFound = lines.length > 0;
  const isNothing = a.checkpoint.size === 0n || b.checkpoint.size === 0n;
  const isSplit = index !== undefined && unsigned.length === 0;
  if (isSplit && a.checkpoint.size !== b.checkpoint.size) lines.push(evidence([a, b]).trimEnd());
  if (!isFound && isNothing) lines.push("nothing compared: a copy without entries is like any log");
  if (!isFound && !isNothing) lines.push("SAME: of both, all entries that both have");
  output.out(printable(`${lines.join("\n")}\n`));
  if (isFound) return 1;
  return isNothing ? COULD_NOT_LOOK : 0;
}

function evidence(copies: Copies): string {
  const said = "Both are signed, and contradict each other: a split view. Keep them as evidence.\n";
  return (
    said + copies.map(({ checkpoint, name }) => `---- ${name} ----\n${checkpoint.note}`).join("")
  );
}
