import { createHash, generateKeyPairSync } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatVkey } from "../../src/core/note.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, filesOf, vkeyText } from "./archive.ts";
import { command, openHome, store } from "./command.ts";
import { smallLog } from "./honest.ts";
import { LOG_ID } from "./log.ts";

const home = openHome();
afterAll(() => home.remove());
const KEY = join(home.folder, "auditor.pem");
const OUT = join(home.folder, "november.jws");
const KEPT = join(home.folder, "kept.note");
const AUDITOR = formatVkey("minutebook-audit", testKey(31).publicKey);
const ARCHIVE = join(home.folder, "archive");
const VERIFY = ["verify", ARCHIVE, "--vkey", vkeyText(), "--checkpoint", KEPT];
const SIGN = ["--sign", KEY, "--out", OUT];

beforeAll(() => {
  const pem = testKey(31).privateKey.export({ format: "pem", type: "pkcs8" });
  writeFileSync(KEY, pem);
  writeFileSync(KEPT, checkpointOf(smallLog(), 5));
  store(ARCHIVE, filesOf(smallLog()));
});

async function report(vkey = AUDITOR): Promise<{ exit: number; out: string; err: string }> {
  return await command("report", OUT, "--vkey", vkey);
}

test("the outcome names the version, the self-test and what was given", async () => {
  const { exit, out } = await command(...VERIFY, "--json");
  const document = JSON.parse(out);
  expect([exit, document.exit]).toEqual([0, 0]);
  expect(document.version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(document.self_test.map(({ name }: { name: string }) => name)).toEqual([
    "rfc6962-roots",
    "ed25519-good",
    "ed25519-bad",
    "golden-log",
    "tampered-twin",
    "golden-approval",
    "forged-approval",
  ]);
  expect(document.self_test.every(({ passed }: { passed: boolean }) => passed)).toBe(true);
  const sha256 = createHash("sha256").update(readFileSync(KEPT)).digest("hex");
  expect(document.inputs).toEqual({
    archive: ARCHIVE,
    vkeys: [vkeyText()],
    checkpoints: [{ name: KEPT, sha256 }],
    usage: [],
    live: false,
  });
  expect(document.logs[0].checkpoint).toContain(`test/${LOG_ID}\n7\n`);
});

test("a signed outcome says what the outcome said, and how it went", async () => {
  const signed = await command(...VERIFY, ...SIGN, "--json");
  expect(signed).toMatchObject({ exit: 0, err: expect.stringContaining(AUDITOR) });
  const { exit, out } = await report();
  expect(exit).toBe(0);
  const { signed_at, ...payload } = JSON.parse(out);
  expect(signed_at).toMatch(/^\d{4}-\d{2}-\d{2}T/);
  const texts = JSON.parse(signed.out, (_, value) =>
    typeof value === "number" ? String(value) : value,
  );
  expect(payload).toEqual(texts);
});

test("a signed finding is a finding for whoever reads the report", async () => {
  const log = smallLog();
  const damaged = join(home.folder, "damaged");
  const files = filesOf(log);
  store(damaged, files.set("tile/0/000.p/7", new Uint8Array(7 * 32)));
  const verify = ["verify", damaged, "--vkey", vkeyText(), ...SIGN];
  expect((await command(...verify)).exit).toBe(1);
  expect((await report()).exit).toBe(1);
  expect((await command("verify", damaged, "--vkey", vkeyText(), "--sign", KEY)).exit).toBe(2);
});

test("a report that was changed anywhere, or is another's, is none", async () => {
  await command(...VERIFY, ...SIGN);
  const text = readFileSync(OUT, "utf8").trimEnd();
  expect((await report(formatVkey("minutebook-audit", testKey(32).publicKey))).exit).toBe(2);
  for (let at = 0; at < text.length; at += 13) {
    const other = text[at] === "A" ? "B" : "A";
    writeFileSync(OUT, `${text.slice(0, at)}${other}${text.slice(at + 1)}`);
    expect((await report()).exit, `character ${at}`).toBe(2);
  }
  for (const wrong of ["", ".", "..", "a.b.c", `${text}.`, `${text}=`, text.slice(0, -1)]) {
    writeFileSync(OUT, wrong);
    expect((await report()).exit, wrong.slice(-9)).toBe(2);
  }
});

test("nothing is signed with a key of another kind, or to where nothing can be written", async () => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const other = join(home.folder, "ec.pem");
  writeFileSync(other, privateKey.export({ format: "pem", type: "pkcs8" }));
  expect((await command(...VERIFY, "--sign", other, "--out", OUT)).exit).toBe(2);
  expect((await command(...VERIFY, "--sign", KEPT, "--out", OUT)).exit).toBe(2);
  const nowhere = join(home.folder, "nowhere/report.jws");
  const refused = await command(...VERIFY, "--sign", KEY, "--out", nowhere);
  expect(refused).toMatchObject({ exit: 2, out: "" });
});
