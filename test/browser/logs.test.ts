/** Whole logs and proofs: the browser's outcome is the program's, to the last member of its document. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Verdict } from "../../audit/browser.ts";
import { exitOf, resultJson } from "../../audit/print.ts";
import { decodeUtf8, encodeBase64 } from "../../src/core/text.ts";
import { auditFiles, checkpointOf, type Files, filesOf, vkey, vkeyText } from "../audit/archive.ts";
import { command, openHome, store } from "../audit/command.ts";
import { Deciding, ISSUER, signingKey } from "../audit/deciding.ts";
import { honestLog, longLog } from "../audit/honest.ts";
import { agentOf, card, LOG_ID, line, OTHER_LOG_ID, TestLog } from "../audit/log.ts";
import { type AuditPage, openAuditPage } from "./page.ts";

const home = openHome();
afterAll(() => home.remove());
const LONG = filesOf(longLog(600), [7, 300, 600]);
const { log } = honestLog();
const HONEST = filesOf(log, [1, 9, log.size]);
let page: AuditPage;
beforeAll(async () => {
  page = await openAuditPage(LONG);
});
afterAll(async () => await page.close());

async function verdictOn(files: Files, options: object = {}): Promise<Verdict> {
  const texts = Array.from(files, ([path, bytes]) => [path, encodeBase64(bytes)]);
  const decoded = "Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))";
  const map = `new Map(${JSON.stringify(texts)}.map(([path, text]) => [path, ${decoded}]))`;
  const given = JSON.stringify({ vkeys: [vkeyText()], ...options });
  return await page.call(`audit.verifyLog({ log: "${LOG_ID}", files: ${map} }, ${given})`);
}

/** What this side makes of the same files, as JSON has it. */
async function expected(files: Files): Promise<{ exit: number; document: unknown }> {
  const result = await auditFiles(files);
  return { exit: exitOf(result), document: JSON.parse(JSON.stringify(resultJson(result))) };
}

test("an honest log is proven, with WebCrypto and without", async () => {
  for (const webCrypto of [true, false]) {
    const { document, exit, text } = await verdictOn(HONEST, { webCrypto });
    expect({ exit, document }).toEqual(await expected(HONEST));
    expect([exit, text]).toEqual([0, expect.stringContaining("PROVEN")]);
  }
});

test("a log is fetched and proven over HTTP by a page of its own server", async () => {
  const { exit, text } = await page.call<Verdict>(
    `audit.verifyLog({ url: "${page.url}" }, { vkeys: ["${vkeyText()}"] })`,
  );
  expect([exit, text]).toEqual([0, expect.stringContaining("all 600 entries")]);
});

test("wherever a byte of a log is changed, the outcome is the program's", async () => {
  const paths = [...HONEST.keys()].filter((path) => !path.startsWith("checkpoint/"));
  let found = 0;
  for (let round = 0; round < 40; round += 1) {
    const path = paths[round % paths.length] ?? "";
    const bytes = (HONEST.get(path) ?? new Uint8Array()).slice();
    const at = (round * 7_919) % bytes.length;
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (round % 8));
    const files = new Map([...HONEST, [path, bytes] as const]);
    const here = await expected(files);
    const { document, exit } = await verdictOn(files, { webCrypto: round % 2 === 0 });
    expect([path, at, { exit, document }]).toEqual([path, at, here]);
    found += exit === 1 ? 1 : 0;
  }
  expect(found).toBe(40);
});

test("a signature of an agent that does not hold is found, with WebCrypto and without", async () => {
  const forged = new TestLog();
  forged.write("rate_card", card());
  const agent = forged.enrol(2, [line("runner-a")]);
  forged.submit(agent);
  forged.force("usage", forged.usage({ ...agent, key: agentOf(9).key }));
  const files = filesOf(forged);
  const here = await expected(files);
  expect(JSON.stringify(here.document)).toContain("jws-signature");
  for (const webCrypto of [true, false]) {
    const { document, exit } = await verdictOn(files, { webCrypto });
    expect({ exit, document }).toEqual(here);
  }
});

test("an approval is proven by its issuer's key, and a forged one is found", async () => {
  const [key, other] = [await signingKey("RS256", "key"), await signingKey("RS256", "key")];
  for (const signer of [key, other]) {
    const two = new Deciding(key);
    const body = card({ by: "p_first" });
    const approval = await two.approve(two.propose("rate_card", body), { signer });
    two.log.write("rate_card", { ...body, approval });
    const files = filesOf(two.log);
    const here = await expected(files);
    expect(here.exit).toBe(signer === key ? 0 : 1);
    for (const webCrypto of [true, false]) {
      const { document, exit } = await verdictOn(files, { webCrypto });
      expect({ exit, document }).toEqual(here);
    }
    const issuerKeys = JSON.stringify({ [ISSUER]: { keys: [] } });
    const { text } = await verdictOn(files, { issuerKeys });
    expect(text).toContain("issuer-key-unknown");
  }
});

test("a checkpoint that was kept must still be in the tree", async () => {
  const forked = checkpointOf(log, 9, new Uint8Array(32));
  const { exit, text } = await verdictOn(HONEST, { checkpoints: [decodeUtf8(forked)] });
  expect([exit, text]).toEqual([1, expect.stringContaining("checkpoint-kept")]);
});

test("what cannot be looked at is a verdict of its own, and never a pass", async () => {
  for (const options of [
    { vkeys: [vkeyText(OTHER_LOG_ID)] },
    { vkeys: ["none"] },
    { policy: "quorum nobody\n" },
    { checkpoints: ["hello"] },
  ]) {
    const { exit, text } = await verdictOn(HONEST, options);
    expect([options, exit, text]).toEqual([options, 2, expect.stringMatching(/^could not look: /)]);
  }
  const away = `audit.verifyLog({ url: "http://ledger.example/logs/${LOG_ID}" }, { vkeys: [] })`;
  expect((await page.call<Verdict>(away)).exit).toBe(2);
});

test("a proof is checked as the program checks it, also where a letter of it is another", async () => {
  const [archive, out] = [join(home.folder, "archive"), join(home.folder, "a.tlog-proof")];
  store(archive, HONEST);
  const prove = ["prove", archive, "--vkey", vkeyText(), "--job", "1", "--tracking", "hosted"];
  expect(await command(...prove, "--out", out)).toMatchObject({ exit: 0 });
  const text = readFileSync(out, "utf8");
  const check = async (changed: string): Promise<Verdict> =>
    page.call(`audit.checkProof(${JSON.stringify(changed)}, { vkeys: ["${vkeyText()}"] })`);
  expect(await check(text)).toMatchObject({
    exit: 0,
    document: { build: { job: "1", charge: { compute_minutes: "1.0000" } } },
  });
  for (let i = 0; i < 30; i += 1) {
    const at = (i * 104_729) % text.length;
    const changed = text.slice(0, at) + (text[at] === "A" ? "B" : "A") + text.slice(at + 1);
    expect([at, (await check(changed)).exit]).not.toEqual([at, 0]);
  }
});

test("a checkpoint is opened, or what is wrong with it is said", async () => {
  const open = (note: string, key: string): Promise<unknown> =>
    page.call(`audit.openCheckpoint(${JSON.stringify(note)}, ["${key}"])`);
  const note = decodeUtf8(checkpointOf(log, 9)) ?? "";
  expect(await open(note, vkeyText())).toMatchObject({ origin: vkey().name, size: "9" });
  expect(await open(note, vkeyText(OTHER_LOG_ID))).toEqual({ problem: "checkpoint-untrusted" });
  expect(await open("hello", vkeyText())).toEqual({ problem: "checkpoint-malformed" });
});
