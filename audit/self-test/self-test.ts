/**
 * Known answers, asked before an audit: a build whose hashing, signatures or judgement are broken must
 * not come to a verdict. The last of them are whole audits, of a log that is proven and of its twin.
 */
import { encodeBundle } from "../../src/core/bundle.ts";
import { verdict } from "../../src/core/ed25519.ts";
import { leafHash } from "../../src/core/hash.ts";
import { rootHash } from "../../src/core/merkle.ts";
import { parseVkey } from "../../src/core/note.ts";
import { decodeBase64, decodeHex, encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { bundlePath, tilePath } from "../../src/core/tile.ts";
import { readHere } from "../reading/reader.ts";
import type { Source } from "../source.ts";
import { memoryPiles } from "../tally/memory.ts";
import { type AuditOptions, type AuditResult, audit } from "../verify.ts";
import { GOLDEN, GOLDEN_APPROVAL, type Golden } from "./golden.ts";

export interface SelfTest {
  name: string;
  passed: boolean;
}

type Tools = Pick<AuditOptions, "hash" | "verify">;

/** The reference tree of transparency-dev/merkle (RFC 6962 §2.1): leaves, and the root of each size. */
const LEAVES = [
  "",
  "00",
  "10",
  "2021",
  "3031",
  "40414243",
  "5051525354555657",
  "606162636465666768696a6b6c6d6e6f",
];
const ROOTS = [
  "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
  "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
  "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
  "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
  "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
  "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
  "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
  "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
];

/** RFC 8032 §7.1, test 2. */
export const ED25519_ANSWER = {
  publicKey: hex("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"),
  message: hex("72"),
  signature: hex(
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
  ),
};

export async function selfTest(tools: Tools): Promise<SelfTest[]> {
  const [log, twin] = [await auditGolden(GOLDEN, tools), await auditTwin(tools)];
  const approved = await auditGolden(GOLDEN_APPROVAL, tools);
  const forged = await auditForged(tools);
  const proven = log.findings.count + log.open.count === 0 && log.kinds.get("usage") === 1n;
  const { byCode, first } = twin.findings;
  return [
    { name: "rfc6962-roots", passed: ROOTS.every((root, i) => rootOf(i + 1, tools) === root) },
    { name: "ed25519-good", passed: holds(0, tools) },
    { name: "ed25519-bad", passed: !holds(1, tools) },
    { name: "golden-log", passed: proven },
    { name: "tampered-twin", passed: byCode.has("entry-altered") && first?.index === TAMPERED },
    { name: "golden-approval", passed: approved.findings.count === 0 && decides(approved) },
    {
      name: "forged-approval",
      passed: forged.findings.byCode.has("approval-signature") || unable(forged),
    },
  ];
}

const TAMPERED = 4n;

function rootOf(size: number, { hash }: Tools): string {
  const leaves = LEAVES.slice(0, size).map((leaf) => leafHash(hex(leaf), hash));
  return encodeHex(rootHash(leaves, hash));
}

/** Whether the signature holds over a message of which a bit may be flipped. */
function holds(flip: 0 | 1, { verify }: Tools): boolean {
  const message = ED25519_ANSWER.message.map((byte) => byte ^ flip);
  return verdict(ED25519_ANSWER.signature, message, ED25519_ANSWER.publicKey, verify);
}

/** Where the page has no WebCrypto nobody can say whose token it is: that is open, and never a pass. */
function unable({ open }: AuditResult): boolean {
  return open.byCode.has("approval-unverified");
}

function decides(result: AuditResult): boolean {
  return result.decisions.count === 1 && (result.open.count === 0 || unable(result));
}

/** The same log, but that its job is said to have cost nothing. */
async function auditTwin(tools: Tools): Promise<AuditResult> {
  const entries = GOLDEN.entries.map((entry) => entry.replace('"60000.000000"', '"0.000000"'));
  return await auditGolden({ ...GOLDEN, entries }, tools);
}

/** The same log, but that a letter in the middle of the token's signature is another. */
async function auditForged(tools: Tools): Promise<AuditResult> {
  const entries = GOLDEN_APPROVAL.entries.map((entry) =>
    entry.replace(/(?<=\.[\w-]{40})[\w-](?=[\w-]{45}"\},"index")/, (letter) =>
      letter === "A" ? "B" : "A",
    ),
  );
  return await auditGolden({ ...GOLDEN_APPROVAL, entries }, tools);
}

async function auditGolden(golden: Golden, tools: Tools): Promise<AuditResult> {
  const vkey = parseVkey(golden.vkey);
  return await audit(goldenSource(golden), {
    ...tools,
    log: golden.log,
    vkeys: vkey === undefined ? [] : [vkey],
    policy: undefined,
    now: 0n,
    reader: readHere(tools),
    openPiles: memoryPiles,
    kept: [],
    live: false,
    usage: [],
  });
}

function goldenSource({ checkpoint, entries, tile }: Golden): Source {
  const width = entries.length;
  const files = new Map([
    [`checkpoint/${width}`, encodeUtf8(checkpoint)],
    [tilePath(0, 0n, width), decodeBase64(tile)],
    [bundlePath(0n, width), encodeBundle(entries.map(encodeUtf8))],
  ]);
  return {
    read: async (path) => files.get(path),
    list: async function* (folder) {
      for (const path of files.keys()) if (path.startsWith(folder)) yield path;
    },
  };
}

function hex(text: string): Uint8Array {
  return decodeHex(text) ?? new Uint8Array();
}
