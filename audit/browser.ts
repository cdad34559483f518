/**
 * The auditor in a browser: the same verdicts as the program's, as one ES module without dependencies.
 * Nothing is asked of a server but the log's own files.
 */
import { verifyByPoints } from "../src/core/ed25519.ts";
import { sha256 } from "../src/core/hash.ts";
import { parseVkey, type Vkey } from "../src/core/note.ts";
import { type Policy, parsePolicy } from "../src/core/policy.ts";
import { encodeBase64, encodeUtf8 } from "../src/core/text.ts";
import { isOriginOf, type Kept, openCheckpoint as openNote } from "./archive/checkpoints.ts";
import { secondsNow } from "./clock.ts";
import { type IssuerKeys, readIssuerKeys } from "./control/issuer-keys.ts";
import { CannotLook } from "./finding.ts";
import { httpSource } from "./http/source.ts";
import { exitOf, printResult, resultJson } from "./print.ts";
import { checkProof as check, type Expected } from "./proof/check.ts";
import { checkedJson, exitOfChecked, printChecked } from "./proof/print.ts";
import { readHere } from "./reading/reader.ts";
import { selfTest } from "./self-test/self-test.ts";
import type { Source } from "./source.ts";
import { memoryPiles } from "./tally/memory.ts";
import { audit } from "./verify.ts";
import { readByWebCrypto } from "./web/reader.ts";
import { openWebVerify } from "./web/verify.ts";

/** Whom to believe: vkeys of logs, and a C2SP tlog-policy's text. */
export interface Trust {
  vkeys: readonly string[];
  policy?: string;
}

/** A log's address, or its files by their tlog-tiles paths, checkpoints as `checkpoint/<size>`. */
export type Place =
  | { url: string; token?: string }
  | { log: string; files: ReadonlyMap<string, Uint8Array> };

export interface VerifyOptions extends Trust {
  /** Notes kept from earlier: what they cover must still be there. */
  checkpoints?: readonly string[];
  /** A JWKS by issuer, as JSON: approvals rest on no other keys. */
  issuerKeys?: string;
  live?: boolean;
  /** False: signatures by point operations alone, as where there is no WebCrypto. */
  webCrypto?: boolean;
  onProgress?(done: bigint, size: bigint): void;
}

export interface CheckOptions extends Trust {
  /** The proof of the entry that enrolled the runner's key. */
  keyProof?: string;
  expected?: Expected;
}

/** 0 proven, 1 a finding, 2 could not look or could not judge; `document` as the program's `--json`. */
export interface Verdict {
  exit: 0 | 1 | 2;
  text: string;
  document: object;
}

const TOOLS = { hash: sha256, verify: verifyByPoints };

export async function verifyLog(place: Place, options: VerifyOptions): Promise<Verdict> {
  return await looking(async () => {
    await testSelf();
    const { policy, vkeys } = trustOf(options);
    const { log, source } = await open(place);
    const verify = options.webCrypto === false ? undefined : await openWebVerify();
    const result = await audit(source, {
      ...TOOLS,
      log,
      vkeys,
      policy,
      now: secondsNow(),
      reader: verify === undefined ? readHere(TOOLS) : readByWebCrypto(sha256, verify),
      openPiles: memoryPiles,
      kept: (options.checkpoints ?? []).map((note, i) => keptOf(log, note, vkeys, i)),
      live: options.live === true,
      usage: [],
      issuerKeys: issuerKeysOf(options.issuerKeys),
      ...(options.onProgress && { onProgress: options.onProgress }),
    });
    return { exit: exitOf(result), text: printResult(result), document: resultJson(result) };
  });
}

export async function checkProof(text: string, options: CheckOptions): Promise<Verdict> {
  return await looking(async () => {
    const { keyProof, expected = {} } = options;
    const given = { ...trustOf(options), now: secondsNow(), keyProof, expected };
    const checked = await check(text, { ...TOOLS, ...given });
    const document = checkedJson(checked);
    return { exit: exitOfChecked(checked), text: printChecked(checked), document };
  });
}

/** A signed note's checkpoint if it is by one of the keys, else the code of what is wrong with it. */
export function openCheckpoint(
  note: string,
  vkeys: readonly string[],
): { origin: string; size: string; root: string } | { problem: string } {
  const trust = { vkeys: trustOf({ vkeys }).vkeys, verify: verifyByPoints };
  const opened = openNote(encodeUtf8(note), trust);
  if (typeof opened === "string") return { problem: opened };
  const { origin, root, size } = opened;
  return { origin, size: String(size), root: encodeBase64(root) };
}

async function looking(look: () => Promise<Verdict>): Promise<Verdict> {
  try {
    return await look();
  } catch (error) {
    if (!(error instanceof CannotLook)) throw error;
    const why = error.message;
    return {
      exit: 2,
      text: `could not look: ${why}\n`,
      document: { exit: 2, could_not_look: why },
    };
  }
}

async function testSelf(): Promise<void> {
  const failed = (await selfTest(TOOLS)).filter(({ passed }) => !passed);
  if (failed.length === 0) return;
  throw new CannotLook(`wrong answers: ${failed.map(({ name }) => name).join(", ")}`);
}

function trustOf({ policy: text, vkeys }: Trust): { vkeys: Vkey[]; policy: Policy | undefined } {
  const policy = text === undefined ? undefined : parsePolicy(text);
  if (policy !== undefined && "problem" in policy) {
    throw new CannotLook(`no policy: line ${policy.line}: ${policy.problem}`);
  }
  const given = vkeys.map((key) => {
    const vkey = parseVkey(key);
    if (vkey?.type !== "ed25519") throw new CannotLook(`${key} is no log's vkey`);
    return vkey;
  });
  return { vkeys: [...given, ...(policy?.logs ?? []).map(({ vkey }) => vkey)], policy };
}

function issuerKeysOf(text: string | undefined): IssuerKeys | undefined {
  const keys = text === undefined ? undefined : readIssuerKeys(text);
  if (text !== undefined && keys === undefined) throw new CannotLook("no JWKS by issuer");
  return keys;
}

async function open(place: Place): Promise<{ log: string; source: Source }> {
  if ("url" in place) return await httpSource(place.url, { token: place.token });
  const { files, log } = place;
  const source: Source = {
    read: async (path) => files.get(path),
    list: async function* (folder) {
      for (const path of files.keys()) {
        if (folder === "" || path.startsWith(`${folder}/`)) yield path;
      }
    },
  };
  return { log, source };
}

function keptOf(log: string, note: string, vkeys: readonly Vkey[], i: number): Kept {
  const checkpoint = openNote(encodeUtf8(note), { vkeys, verify: verifyByPoints });
  const name = `checkpoints[${i}]`;
  if (typeof checkpoint === "string") throw new CannotLook(`${name}: ${checkpoint}`);
  if (isOriginOf(log, checkpoint.origin)) return { name, checkpoint };
  throw new CannotLook(`${name} is about ${checkpoint.origin}`);
}
