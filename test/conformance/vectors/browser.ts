/** Ed25519 and JWS vectors once more, by the auditor's module in a real Chromium. */
import { admissibleKey, verdict } from "../../../src/core/ed25519.ts";
import { decodeHex, encodeHex, encodeUtf8 } from "../../../src/core/text.ts";
import { type AuditPage, openAuditPage } from "../../browser/page.ts";
import type { Signed, Verdicts } from "../../browser/probe.ts";
import { findChromium } from "../../chromium.ts";
import { verifyBySodium } from "../../signing.ts";
import { left, readJson, type Vector, vector } from "../vector.ts";

interface Wycheproof<Group> {
  testGroups: Group[];
}

interface Ed25519Group {
  publicKey: { pk: string };
  tests: { tcId: number; msg: string; sig: string }[];
}

interface JwsGroup {
  tests: { tcId: number; jws: string }[];
}

interface Cctv {
  number: number;
  key: string;
  sig: string;
  msg: string;
}

export async function* browserVectors(folder: string): AsyncGenerator<Vector> {
  const names: string[] = [];
  const signed: Signed[] = [];
  const ed25519 = readJson<Wycheproof<Ed25519Group>>(folder, "jws/wycheproof_ed25519_test.json");
  for (const { publicKey, tests } of ed25519.testGroups) {
    for (const { msg, sig, tcId } of tests) {
      names.push(`browser: wycheproof ed25519 ${tcId}`);
      signed.push({ publicKey: publicKey.pk, message: msg, signature: sig });
    }
  }
  for (const { key, msg, number, sig } of readJson<Cctv[]>(
    folder,
    "jws/cctv_ed25519vectors.json",
  )) {
    names.push(`browser: cctv ed25519 ${number}`);
    signed.push({ publicKey: key, message: encodeHex(encodeUtf8(msg)), signature: sig });
  }
  if (findChromium() === undefined) {
    yield left("browser", "no Chromium on this machine: npx tsx test/prepare.ts, or CHROMIUM=PATH");
    return;
  }
  const page = await openAuditPage();
  try {
    yield* signatures(page, names, signed);
    const jws = readJson<Wycheproof<JwsGroup>>(
      folder,
      "jws/wycheproof_json_web_signature_test.json",
    );
    yield* refused(
      page,
      jws.testGroups.flatMap(({ tests }) => tests),
    );
  } finally {
    await page.close();
  }
}

async function* signatures(
  page: AuditPage,
  names: readonly string[],
  signed: readonly Signed[],
): AsyncGenerator<Vector> {
  const found = await page.call<Verdicts[]>(`probe.judgeSignatures(${JSON.stringify(signed)})`);
  for (const [i, { message, publicKey, signature }] of signed.entries()) {
    const key = hex(publicKey);
    const expected =
      admissibleKey(key) && verdict(hex(signature), hex(message), key, verifyBySodium);
    const { points, web } = found[i] ?? { points: !expected, web: !expected };
    const detail = `libsodium ${expected}, points ${points}, WebCrypto ${web}`;
    yield vector(names[i] ?? "", points === expected && web === expected, detail);
  }
}

/** No group of the file is signed with Ed25519: none of it may be taken, under whatever key. */
async function* refused(page: AuditPage, tests: JwsGroup["tests"]): AsyncGenerator<Vector> {
  const texts = JSON.stringify(tests.map(({ jws }) => jws));
  const found = await page.call<Verdicts[]>(`probe.judgeJws(${texts}, "${"66".repeat(32)}")`);
  for (const [i, { tcId }] of tests.entries()) {
    const { points, web } = found[i] ?? { points: true, web: true };
    yield vector(`browser: wycheproof jws ${tcId}`, !points && !web, "taken");
  }
}

function hex(text: string): Uint8Array {
  const bytes = decodeHex(text);
  if (bytes === undefined) throw new Error("a published vector does not decode");
  return bytes;
}
