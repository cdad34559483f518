/** The command line on what two persons decided: whose keys count, and who decided what. */
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { filesOf, vkeyText } from "./archive.ts";
import { command, openHome, store } from "./command.ts";
import { Deciding, ISSUER, signingKey } from "./deciding.ts";
import { card } from "./log.ts";

const home = openHome();
afterAll(() => home.remove());
const archive = join(home.folder, "archive");
const keys = join(home.folder, "issuers.json");
const verify = ["verify", archive, "--vkey", vkeyText()];
let jwk: object;

beforeAll(async () => {
  const key = await signingKey("RS256", "key");
  const two = new Deciding(key);
  const body = card({ by: "p_first" });
  two.log.write("rate_card", { ...body, approval: await two.decide("rate_card", body) });
  store(archive, filesOf(two.log));
  jwk = key.jwk;
});

function publish(keysOfIssuer: readonly object[]): string[] {
  writeFileSync(keys, JSON.stringify({ [ISSUER]: { keys: keysOfIssuer } }));
  return ["--issuer-keys", keys];
}

test("approvals rest on the keys that their issuer publishes, with whatever else it says of them", async () => {
  const published = publish([{ ...jwk, alg: "RS256", kid: "key", use: "sig" }, { kty: "oct" }]);
  const { exit, out } = await command(...verify, ...published, "--json");
  const document = JSON.parse(out);
  expect([exit, document.inputs.issuer_keys.name]).toEqual([0, keys]);
  expect(document.logs[0].issuer_keys).toMatchObject([{ approvals: "1", issuer: ISSUER }]);
  expect(document.logs[0].limits.join()).not.toContain("--issuer-keys");
});

test("a key of an issuer that does not publish it is a finding, and no file of keys is no look", async () => {
  expect(await command(...verify, ...publish([]))).toMatchObject({
    exit: 1,
    out: expect.stringContaining("issuer-key-unknown"),
  });
  writeFileSync(keys, "[]");
  expect((await command(...verify, "--issuer-keys", keys)).exit).toBe(2);
  writeFileSync(keys, "no JSON");
  expect((await command(...verify, "--issuer-keys", keys)).exit).toBe(2);
  const range = ["--from", "0", "--to", "1"];
  expect((await command(...verify, ...publish([]), ...range)).exit).toBe(2);
});

test("a report shows what was decided in a period, by whom, and nobody's name", async () => {
  const [pem, out] = [join(home.folder, "auditor.pem"), join(home.folder, "report.jws")];

  const { privateKey } = generateKeyPairSync("ed25519");
  writeFileSync(pem, privateKey.export({ format: "pem", type: "pkcs8" }));
  const signed = await command(...verify, "--sign", pem, "--out", out);
  const [vkey = ""] = /minutebook-audit\+\S+/.exec(signed.err) ?? [];
  const report = async (period: string) =>
    await command("report", out, "--vkey", vkey, "--decided", period);
  const year = await report("2026-01-01..2027-01-01");
  expect([signed.exit, year.exit]).toEqual([0, 0]);
  expect(year.out).toMatch(
    /entry 5 rate_card: proposed by p_first \(entry 3\), approved by p_second; incident, CASE-1/,
  );
  expect((await report("2027-01-01..2028-01-01")).out).not.toContain("rate_card");
  expect((await report("yesterday")).exit).toBe(2);
  const none = await command(...verify, "--decided", "2025-01-01..2026-01-01", "--json");
  expect(JSON.parse(none.out).logs[0].decisions).toEqual({ count: 0, listed: [] });
});
