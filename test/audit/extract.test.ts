/** The folder of a period: every file says what it is and proves that it is whole; gaps and what is open are named. */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { EXTRACTS } from "../../audit/extract/folder.ts";
import { formatDecimal, parseDecimal } from "../../audit/extract/money.ts";
import { formatVkey } from "../../src/core/note.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { testKey } from "../signing.ts";
import { filesOf, vkeyText } from "./archive.ts";
import { account, close, difference, ready } from "./closing.ts";
import { command, openHome, store } from "./command.ts";
import { Deciding, signingKey } from "./deciding.ts";
import { card, limit, line, SALT, type TestLog } from "./log.ts";

const home = openHome();
afterAll(() => home.remove());
const archive = join(home.folder, "archive");
const out = join(home.folder, "evidence");
const key = join(home.folder, "auditor.pem");
const AUDITOR = formatVkey("minutebook-audit", testKey(31).publicKey);
const EVIDENCE = ["evidence", archive, "--vkey", vkeyText()];
const PERIOD = ["--from", "2026-11-21", "--to", "2026-12-08"];

const HASH = encodeBase64(new Uint8Array(32));
const BY = { by: "p_first", salt: SALT };
const WHY = { reason: "incident", ticket: "CASE-1" };
let log: TestLog;
let usage: string;

beforeAll(async () => {
  const two = new Deciding(await signingKey("EdDSA", "key"));
  ({ log } = two);
  const first = card({ by: "p_first" });
  log.write("rate_card", { ...first, approval: await two.decide("rate_card", first) });
  log.write("account", account({ approval: await two.decide("account", account()) }));
  const agent = log.enrol(2, [line("runner-a")]);
  usage = log.submit(agent, { job: "1", duration: "60000" });
  const environment = { schema_sha256: HASH, dependencies_sha256: HASH, grants_sha256: HASH };
  log.write("environment", { ...environment, triggers_sha256: HASH, salt: SALT, version: "1.0.0" });
  const found = log.write("break", difference("2026-11-01"));

  log.at = "2026-11-22T01:00:00.000Z";
  const verified = { findings: "0", from: "0", salt: SALT, version: "1.0.0" };
  const size = String(log.size);
  log.write("verification", { ...verified, day: "2026-11-22", outcome: "passed", to: size });
  log.write("access_digest", { day: "2026-11-21", lines: "3", lines_sha256: HASH, salt: SALT });
  const refused = two.propose("quota", limit("1", "100"));
  log.write("proposal_ended", { ...BY, outcome: "refused", proposal: refused, reason: "no" });
  const asked = two.propose("quota", limit("2", "100"));
  log.at = "2026-11-25T01:00:00.000Z";
  const digest = { day: "2026-11-23", lines: "1", lines_sha256: HASH, missing: "2", salt: SALT };
  log.write("access_digest", digest);
  log.write("verification", {
    ...verified,
    day: "2026-11-25",
    from: size,
    to: size,
    outcome: "nothing",
  });
  const lines = [
    { amount: "-0.500000", entry: usage, namespace_id: "1", project_id: "10", reverses: "" },
    { amount: "-1.000001", entry: usage, namespace_id: "1", project_id: "10", reverses: "" },
  ].map((each) => ({ ...each, usage_month: "2026-11-01" }));
  const posted = { billing_month: "2026-11-01", credit_run: "", first_line: "0" };
  const corrected = { ...BY, ...WHY, ...posted, lines };
  const approval = await two.decide("adjustment", corrected);
  log.write("adjustment", { ...corrected, approval });
  const settled = { ...BY, ...WHY, break: found, evidence: "", outcome: "accepted" } as const;
  log.write("break_resolved", {
    ...settled,
    approval: await two.decide("break_resolved", settled),
  });
  log.write("break", difference("2026-12-01", 2));
  ready(log, "2026-11-01", [agent]);
  close(log, "2026-11-01");
  log.at = "2026-12-09T00:00:00.000Z";
  log.write("proposal_ended", { ...BY, outcome: "withdrawn", proposal: asked, reason: "later" });
  store(archive, filesOf(log));
  writeFileSync(key, testKey(31).privateKey.export({ format: "pem", type: "pkcs8" }));
});

type Line = Readonly<Record<string, unknown>>;

interface Extracted {
  header: Line;
  rows: Line[];
  footer: Line;
}

function extracted(name: string, folder = out): Extracted {
  const text = readFileSync(join(folder, `${name}.ndjson`), "utf8");
  const [header = {}, ...rest] = text
    .trimEnd()
    .split("\n")
    .map((each): Line => JSON.parse(each));
  const footer = rest.pop() ?? {};
  return { header, rows: rest, footer };
}

const digest = (content: string | Uint8Array): string =>
  createHash("sha256").update(content).digest("base64");

test("every file says what it is and how much is in it, and the signed manifest names each by its hash", async () => {
  const written = await command(...EVIDENCE, ...PERIOD, "--out", out, "--key", key);
  expect(written).toMatchObject({ exit: 0, out: expect.stringContaining(AUDITOR) });
  const manifest = JSON.parse(readFileSync(join(out, "manifest.json"), "utf8"));
  const named = manifest.files.map(({ file }: { file: string }) => file);
  const beside = ["manifest.json", "manifest.jws"];
  expect([...named, ...beside].sort()).toEqual(readdirSync(out).sort());
  for (const { file, sha256 } of manifest.files) {
    expect(digest(readFileSync(join(out, file))), file).toBe(sha256);
  }
  for (const { name, controls, columns } of EXTRACTS) {
    const { footer, header, rows } = extracted(name);
    expect(header).toMatchObject({
      ...{ extract: name, controls, columns, log: log.id, generator: "minutebook-audit" },
      ...{ from: "2026-11-21", to: "2026-12-08", checkpoint: { size: String(log.size) } },
    });
    const text = readFileSync(join(out, `${name}.ndjson`), "utf8");
    const above = text.slice(0, text.lastIndexOf("\n", text.length - 2) + 1);
    expect(footer).toMatchObject({ rows: String(rows.length), sha256: digest(above) });
  }
  const report = await command("report", join(out, "manifest.jws"), "--vkey", AUDITOR);
  expect(report.exit).toBe(0);
  expect(JSON.parse(report.out).files).toEqual(manifest.files);
});

test("approvals and refusals of the period are there with who and why, and so is what nobody has decided yet", () => {
  const { rows } = extracted("decisions");
  expect(rows.map(({ action, outcome, decider }) => [action, outcome, decider])).toEqual([
    ["quota", "refused", "p_first"],
    ["adjustment", "approved", "p_second"],
    ["break_resolved", "approved", "p_second"],
    ["quota", "open", ""],
  ]);
  expect(rows[1]).toMatchObject({ proposer: "p_first", reason: "incident", ticket: "CASE-1" });
});

test("days of which the log says nothing are named", () => {
  const days = extracted("verifications").rows.map(({ day, outcome }) => `${day} ${outcome}`);
  expect(days.slice(0, 6)).toEqual([
    "2026-11-21 missing",
    "2026-11-22 passed",
    "2026-11-23 missing",
    "2026-11-24 missing",
    "2026-11-25 nothing",
    "2026-11-26 missing",
  ]);
  expect(days).toHaveLength(17);
  const { footer, rows } = extracted("access_digests");
  const said = { day: "2026-11-21", state: "digest", lines: "3", missing: "0", lines_sha256: HASH };
  expect(rows[0]).toMatchObject(said);
  expect(rows[1]).toMatchObject({ day: "2026-11-22", index: "", state: "none", lines: "" });
  expect(rows[2]).toMatchObject({ day: "2026-11-23", lines: "1", missing: "2" });
  expect(footer).toMatchObject({ sums: { lines: "4", missing: "2" } });
});

test("corrections add up to the last digit, and what is older is there only where it still holds", () => {
  const { footer, rows } = extracted("adjustments");
  expect(rows.map(({ amount }) => amount)).toEqual(["-0.500000", "-1.000001"]);
  expect(footer).toMatchObject({ rows: "2", sums: { amount: "-1.500001" } });
  expect(extracted("rate_cards").rows).toHaveLength(1);
  expect(extracted("environments").rows).toHaveLength(1);
  expect(extracted("usage").rows).toEqual([]);
});

test("a break has its age and how it was settled; an open one says so", () => {
  const rows = extracted("exceptions").rows.map(({ kind, outcome, age_days, by }) => {
    return [kind, outcome, age_days, by];
  });
  expect(rows).toEqual([
    ["break", "accepted", "4", "p_first"],
    ["break", "open", "13", ""],
  ]);
});

test("a month that was closed has its statement, made again from the entries", async () => {
  const statement = readFileSync(join(out, "statement-2026-11.json"), "utf8");
  const made = await command("statement", archive, "--vkey", vkeyText(), "--month", "2026-11");
  expect(made).toMatchObject({ out: statement, err: expect.stringContaining("NOT JUDGED") });
  expect(extracted("months").rows.map(({ kind }) => kind)).toEqual([
    "month_closing",
    "month_closed",
  ]);
});

test("without a key the manifest says that nobody answers for it; a folder with files is left alone", async () => {
  const folder = join(home.folder, "unsigned");
  const unsigned = await command(...EVIDENCE, ...PERIOD, "--out", folder);
  expect(unsigned).toMatchObject({ exit: 0, out: expect.stringContaining("unsigned") });
  expect(JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")).signed).toBe(false);
  expect(readdirSync(folder)).not.toContain("manifest.jws");
  expect((await command(...EVIDENCE, ...PERIOD, "--out", folder)).exit).toBe(2);
  const backwards = ["--from", "2026-12-01", "--to", "2026-11-01"];
  expect((await command(...EVIDENCE, ...backwards, "--out", `${folder}-2`)).exit).toBe(2);
});

test("entries that are not what was signed leave no manifest", async () => {
  const damaged = join(home.folder, "damaged");
  const files = filesOf(log);
  const [path = "", bundle = new Uint8Array()] =
    [...files].find(([name]) => name.startsWith("tile/entries/")) ?? [];
  const text = Buffer.from(bundle).toString("latin1").replace("CASE-1", "CASE-2");
  store(damaged, files.set(path, Buffer.from(text, "latin1")));
  const folder = join(home.folder, "of-damaged");
  const ended = await command(
    "evidence",
    damaged,
    ...EVIDENCE.slice(2),
    ...PERIOD,
    "--out",
    folder,
  );
  expect(ended).toMatchObject({ exit: 1, out: expect.stringContaining("entry-altered") });
  expect(readdirSync(folder)).not.toContain("manifest.json");
});

test("a place that takes no folders is said, by whatever writes there", async () => {
  const files = ["/proc/none/a", join(home.folder, "auditor.pem", "a")];
  for (const place of files) {
    const said = await command(...EVIDENCE, ...PERIOD, "--out", place);
    expect(said).toMatchObject({ exit: 2, err: expect.stringContaining("cannot be written") });
    const fetched = await command("bundle", archive, place, "--vkey", vkeyText());
    expect(fetched).toMatchObject({ exit: 2, err: expect.stringContaining("cannot be written") });
  }
});

test.each(["0", "-0.000001", "12.5", "-9007199254740993.000001", "3"])(
  "%s is summed exactly",
  (text) => {
    expect(formatDecimal(parseDecimal(text))).toBe(text);
  },
);
