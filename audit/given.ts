/** What an auditor brings along: trusted keys, a policy, checkpoints that were kept, figures of the service. */
import { readFileSync } from "node:fs";
import type { Verify } from "../src/core/ed25519.ts";
import { parseVkey, type Vkey } from "../src/core/note.ts";
import { type Policy, parsePolicy } from "../src/core/policy.ts";
import { isOriginOf, type Kept, openCheckpoint } from "./archive/checkpoints.ts";
import { type IssuerKeys, readIssuerKeys } from "./control/issuer-keys.ts";
import { CannotLook } from "./finding.ts";
import { readUsageFile, type UsageFile } from "./tally/usage.ts";

/** Whom an audit believes. */
export interface Trust {
  vkeys: Vkey[];
  policy: Policy | undefined;
}

/** `vkeys` are texts or files; the policy's own logs are trusted besides. */
export function readTrust(vkeys: readonly string[], policyFile: string | undefined): Trust {
  const policy = policyFile === undefined ? undefined : readPolicy(policyFile);
  const given = [...vkeys.flatMap(readVkeys), ...(policy?.logs ?? []).map(({ vkey }) => vkey)];
  return { vkeys: given, policy };
}

/** Of a file that holds a bearer token and nothing else. */
export function readToken(path: string): string {
  const token = readFile(path).toString("utf8").trim();
  if (!/^[!-~]+$/.test(token)) throw new CannotLook(`${path} holds no bearer token`);
  return token;
}

/** A note that no trusted key has signed contradicts nothing: it proves nothing either. */
export function readKept(
  name: string,
  trust: { vkeys: readonly Vkey[]; verify: Verify },
  logs: readonly string[],
): Kept {
  const checkpoint = openCheckpoint(readFile(name), trust);
  if (typeof checkpoint === "string") {
    throw new CannotLook(`${name} is no checkpoint under a given key: ${checkpoint}`);
  }
  const { origin } = checkpoint;
  if (!logs.some((log) => isOriginOf(log, origin)))
    throw new CannotLook(`${name} is about ${origin}`);
  return { name, checkpoint };
}

export function readUsage(name: string, logs: readonly string[]): UsageFile {
  const file = readUsageFile(name, readFile(name).toString("utf8"));
  if (file === undefined) {
    throw new CannotLook(`${name} is no answer of GET /v1/usage that this version can sum again`);
  }
  if (!logs.includes(file.log)) throw new CannotLook(`${name} is about log ${file.log}`);
  return file;
}

export function readIssuerKeysOf(path: string): IssuerKeys {
  const keys = readIssuerKeys(readFile(path).toString("utf8"));
  if (keys === undefined) throw new CannotLook(`${path} is no JWKS by issuer`);
  return keys;
}

export function readFile(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new CannotLook(`${path} cannot be read`, { cause: error });
  }
}

/** A key's text, or a file with one on each line. */
export function readVkeys(textOrFile: string): Vkey[] {
  const given = parseVkey(textOrFile);
  if (given !== undefined) return [logKey(given, textOrFile)];
  const lines = readFile(textOrFile)
    .toString("utf8")
    .split(/\r?\n/)
    .filter((line) => line !== "");
  return lines.map((line) => {
    const vkey = parseVkey(line);
    if (vkey === undefined) throw new CannotLook(`${textOrFile} holds a line that is no vkey`);
    return logKey(vkey, textOrFile);
  });
}

/** A witness's key must never stand in for a log's. */
function logKey(vkey: Vkey, where: string): Vkey {
  if (vkey.type === "ed25519") return vkey;
  throw new CannotLook(`${where} holds a witness's key: those are named in a policy`);
}

function readPolicy(path: string): Policy {
  const policy = parsePolicy(readFile(path).toString("utf8"));
  if ("problem" in policy) {
    throw new CannotLook(`${path} is no policy: line ${policy.line}: ${policy.problem}`);
  }
  for (const { vkey } of policy.logs) logKey(vkey, path);
  return policy;
}
