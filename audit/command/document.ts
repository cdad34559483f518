/** The outcome of an audit as one document: what looked, with what, at what, and how it went. */
import { writeFileSync } from "node:fs";
import { formatVkey, type Vkey } from "../../src/core/note.ts";
import { encodeHex } from "../../src/core/text.ts";
import type { Period } from "../control/decisions.ts";
import { CannotLook } from "../finding.ts";
import { readFile } from "../given.ts";
import { sha256 } from "../native.ts";
import { signReport } from "../report.ts";
import type { SelfTest } from "../self-test/self-test.ts";
import { readSigningKey } from "../signing-key.ts";
import { readVersion } from "../version.ts";
import type { Exit } from "./output.ts";

/** What was given to the audit; files are named with what was in them. */
export interface Inputs {
  archive: string;
  vkeys: readonly Vkey[];
  policy?: string;
  checkpoint: readonly string[];
  usage: readonly string[];
  issuerKeys?: string;
  decided?: Period;
  live?: true;
  from?: bigint;
  to?: bigint;
}

interface Outcome {
  self: readonly SelfTest[];
  inputs: Inputs;
  logs: readonly object[];
  exit: Exit;
}

/** The name of a report's key, as signed notes name keys. */
const SIGNER = "minutebook-audit";

export function documentOf({ exit, inputs, logs, self }: Outcome): object {
  const { archive, checkpoint, decided, from, issuerKeys, live, policy, to, usage, vkeys } = inputs;
  return {
    version: readVersion(),
    self_test: self,
    inputs: {
      archive,
      vkeys: vkeys.map(({ name, publicKey }) => formatVkey(name, publicKey)),
      ...(policy !== undefined && { policy: digested(policy) }),
      checkpoints: checkpoint.map(digested),
      usage: usage.map(digested),
      ...(issuerKeys !== undefined && { issuer_keys: digested(issuerKeys) }),
      ...(decided && { decided }),
      live: live === true,
      ...(from !== undefined && { from: String(from) }),
      ...(to !== undefined && { to: String(to) }),
    },
    exit,
    logs,
  };
}

/**
 * Looks at key and file before the audit, not after it. What it gives back signs a document with the
 * time, writes it, and says which key to check it with.
 */
export function signDocument({
  out,
  sign,
}: {
  out?: string;
  sign?: string;
}): ((document: object) => string) | undefined {
  if ((out === undefined) !== (sign === undefined)) {
    throw new CannotLook("--sign KEY and --out FILE go together");
  }
  if (out === undefined || sign === undefined) return undefined;
  const key = readSigningKey(sign);
  write(out, "", "a"); // an earlier one stays until there is a newer
  return (document) => {
    write(out, `${signReport({ ...document, signed_at: new Date().toISOString() }, key)}\n`);
    return `${out}: signed, to be checked with ${formatVkey(SIGNER, key.publicKey)}\n`;
  };
}

function digested(path: string): object {
  return { name: path, sha256: encodeHex(sha256(readFile(path))) };
}

function write(path: string, text: string, flag: "a" | "w" = "w"): void {
  try {
    writeFileSync(path, text, { flag });
  } catch (error) {
    throw new CannotLook(`${path} cannot be written`, { cause: error });
  }
}
