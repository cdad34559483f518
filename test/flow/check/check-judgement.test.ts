/** Logs whose bytes and tables agree, and that no service would have written so. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Body, DispositionLine } from "../../../src/core/entry.ts";
import { encodeBase64, encodeUtf8 } from "../../../src/core/text.ts";
import { check } from "../../../src/flow/check/check.ts";
import type { Finding, Summary } from "../../../src/flow/check/event.ts";
import { sha256 } from "../../../src/flow/report/signature.ts";
import type { Agent } from "../../builds.ts";
import { attestation, PACK, REVOCATION } from "../../core/history.ts";
import { TestLedger } from "../../ledger.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { HOSTED, LOG, OWN } from "../history.ts";

let db: FreshDatabase;
let ledger: TestLedger;
let agent: Agent;

beforeEach(async () => {
  db = await freshDatabase();
  ledger = new TestLedger(LOG);
  ledger.card("hosted", { small: "1" });
  agent = ledger.enrol(1, [HOSTED, OWN]);
});
afterEach(async () => {
  await db.drop();
});

const SALT = encodeBase64(new Uint8Array(16));

async function run(): Promise<{ findings: Finding[]; summary: Summary | undefined }> {
  await ledger.load(db.owner);
  const findings: Finding[] = [];
  let summary: Summary | undefined;
  for await (const event of check({ sql: db.reader }, { hash: sha256 })) {
    if (event.kind === "finding") findings.push(event);
    if (event.kind === "summary") summary = event;
  }
  return { findings, summary };
}

const said = ({ table, index, column, expected, found }: Finding) =>
  `${table} ${index} ${column}: ${expected}, not ${found}`;

const WRONG: [string, Partial<Body<"usage">>, string][] = [
  [
    "charge",
    { compute_ms: "59999.999999" },
    "compute_ms 60000.000000, not compute_ms 59999.999999",
  ],
  ["factor", { factor: "1/2" }, "factor 1/1, not factor 1/2"],
  ["card", { card: "0" }, "card 1, not card 0"],
  ["class", { class: "oss" }, "class standard, not class oss"],
  ["limit", { limit: "1" }, "limit , not limit 1"],
  ["machine type", { machine_type: "large" }, "machine_type small, not machine_type large"],
  [
    "posting month",
    { billing_month: "2026-12-01" },
    "billing_month 2026-11-01, not billing_month 2026-12-01",
  ],
  [
    "usage month",
    { usage_month: "2026-10-01" },
    "usage_month 2026-11-01, not usage_month 2026-10-01",
  ],
  [
    "reason",
    { billable: false, not_billable: "failure_reason" },
    "not_billable , not not_billable failure_reason",
  ],
  ["release", { hold: "1" }, "usage of hold 1 that was released right before, not usage"],
];

test.each(WRONG)(
  "a usage with a wrong %s is judged again and named",
  async (_, change, expected) => {
    const entry = ledger.report(agent, { job: 1, runner: HOSTED }, (body) => ({
      ...body,
      ...change,
    }));
    const { findings, summary } = await run();
    expect(findings.map(said)).toContain(`entries ${entry.index} bytes: ${expected}`);
    expect(summary?.exit).toBe(1);
  },
);

test("a usage that had to be held, and a hold without its reason, are named", async () => {
  const unrated = ledger.sign(agent, { job: 1, runner: OWN });
  const rated = ledger.sign(agent, { job: 2, runner: HOSTED });
  const { body } = ledger.report(agent, { job: 3, runner: HOSTED });
  const usage = ledger.append("usage", { ...(body as Body<"usage">), jws: unrated.jws });
  const hold = ledger.append("hold", { code: "future", jws: rated.jws });
  await db.superuser`alter table entries drop constraint entries_usage_typed`;
  const { findings } = await run();
  expect(findings.map(said)).toContain(`entries ${usage.index} bytes: hold no-rate, not usage`);
  expect(findings.map(said)).toContain(`entries ${hold.index} bytes: usage, not future`);
});

test("a hold of what stands already is named: it had to be a duplicate", async () => {
  const build = { job: 1, runner: HOSTED, finished: "2026-10-31T00:00:00.000Z" };
  ledger.report(agent, build);
  const { index } = ledger.append("hold", {
    code: "key-ended",
    jws: ledger.sign(agent, build).jws,
  });
  const { findings } = await run();
  expect(findings.map(said)).toContain(`entries ${index} bytes: duplicate, not key-ended`);
});

test("a conflict with nothing, and one that is a duplicate, are named", async () => {
  const build = { job: 1, runner: HOSTED };
  const first = ledger.report(agent, build);
  const other = ledger.report(agent, { job: 2, runner: HOSTED });
  const again = ledger.sign(agent, build);
  const stands = String(first.index);
  const duplicate = ledger.append("conflict", { jws: again.jws, stands });
  const longer = ledger.sign(agent, { ...build, duration: 1n });
  const astray = ledger.append("conflict", { jws: longer.jws, stands: String(other.index) });
  const late = ledger.append("conflict", { jws: longer.jws, stands: "99" });
  const { findings } = await run();
  const all = findings.map(said);
  const same = "stands: the usage of the same job";
  expect(all).toContain(`entries ${duplicate.index} bytes: duplicate, not conflict`);
  expect(all).toContain(`entries ${astray.index} bytes: ${same}, not stands ${other.index}`);
  expect(all).toContain(`entries ${late.index} bytes: ${same}, not stands 99`);
});

/** What is said of a disposition with this one line of the agent's. */
async function saidOf(line: Partial<DispositionLine>): Promise<string[]> {
  const whole = { code: "duplicate", counter: "1", digest: NO_DIGEST, index: "", ...line };
  const { index } = ledger.append("disposition", { kid: agent.kid, lines: [whole], salt: SALT });
  const { findings } = await run();
  const place = `entries ${index} bytes: `;
  return findings.flatMap((finding) => said(finding).split(place)[1] ?? []);
}

const NO_DIGEST = encodeBase64(new Uint8Array(32));

test("lines of a disposition name an enrolled key, rising counters, and usages for duplicates", async () => {
  const line = { code: "duplicate", digest: NO_DIGEST };
  const kid = NO_DIGEST.replace(/=+$/, "");
  const { index } = ledger.append("disposition", {
    kid,
    lines: [
      { ...line, counter: "5", index: "1" },
      { ...line, counter: "4", index: "99" },
    ],
    salt: SALT,
  });
  const { findings } = await run();
  const all = findings.map(said);
  expect(all).toContain(`entries ${index} bytes: kid: an enrolled key, not kid ${kid}`);
  expect(all).toContain(`entries ${index} bytes: counter from 5, not counter 4`);
  expect(all).toContain(`entries ${index} bytes: index: a usage, not index 1`);
  expect(all).toContain(`entries ${index} bytes: index: an entry before, not index 99`);
});

test.each<[string, Partial<DispositionLine>, string]>([
  ["whose code stands for an entry", { code: "accepted" }, "code accepted"],
  ["whose code nobody knows", { code: "foo" }, "code foo"],
  ["of what proves nothing", { code: "bad-signature" }, "code bad-signature"],
  ["under counter 0", { code: "schema", counter: "0" }, "counter from 1, not counter 0"],
  ["of a refused report that names an entry", { code: "schema", index: "1" }, "index: none"],
  ["that notes a reuse and accounts for nothing", { code: "counter-reused" }, "an account of"],
  ["that notes a reuse and names an enrolment", { code: "counter-reused", index: "2" }, "a usage"],
])("a line %s is named", async (_, line, expected) => {
  expect(await saidOf(line)).toEqual([expect.stringContaining(expected)]);
});

test("a reuse that is noted beside another report's hold, or for another counter, is named", async () => {
  const { jws } = ledger.sign(agent, { job: 1, runner: OWN });
  const hold = ledger.append("hold", { code: "no-rate", jws });
  const line = { code: "counter-reused", counter: "1", index: String(hold.index) };
  const digest = encodeBase64(sha256(encodeUtf8(jws)));
  const named = [expect.stringContaining("index: a usage, or the report's own entry")];
  expect(await saidOf(line)).toEqual(named);
  expect(await saidOf({ ...line, counter: "2", digest })).toEqual(named);
  expect(await saidOf({ ...line, digest })).toEqual([]);
});

test("an attestation by a key that has ended, and one by a stranger, are named", async () => {
  ledger.append("key_revoked", { ...REVOCATION, kid: agent.kid, last_trusted_counter: "3" });
  ledger.append("attestation", { jws: attestation(1, "3", LOG) });
  const late = ledger.append("attestation", { jws: attestation(1, "4", LOG) });
  const astray = ledger.append("attestation", { jws: attestation(77, "1", LOG) });
  const { findings } = await run();
  expect(findings.map(said)).toEqual([
    `entries ${late.index} bytes: an admissible entry, not key-has-ended`,
    `entries ${astray.index} bytes: an admissible entry, not unknown-key`,
  ]);
});

test("a service that says its version again, or an older one, is named", async () => {
  const say = (version: string) =>
    ledger.append("service", { schema_sha256: NO_DIGEST, salt: SALT, version });
  const [, again, , older] = [say("1.9.0"), say("1.9.0"), say("1.10.0"), say("1.9.0")];
  const { findings } = await run();
  expect(findings.map(said)).toEqual([
    `entries ${again?.index} bytes: a version after 1.9.0, not version 1.9.0`,
    `entries ${older?.index} bytes: a version after 1.10.0, not version 1.9.0`,
  ]);
});

test("a control entry that was not admissible is named with the code", async () => {
  ledger.card("hosted", { small: "0" });
  const { findings } = await run();
  expect(findings.map(said)).toEqual([
    `entries ${ledger.size - 1n} bytes: an admissible entry, not starts-in-the-past`,
  ]);
});

test("versions of a pack that could not follow are named with the code, and others pass", async () => {
  const say = (source_version: string, more: Partial<Body<"pack">> = {}) =>
    String(ledger.append("pack", { ...PACK, source_version, ...more }).index);
  say("9");
  say("10", { minutes: "0", expires_in: "2026-11-01" });
  say("1", { source: "another" });
  const stale = say("10");
  const moved = say("11", { namespace_id: "8" });
  const { findings } = await run();
  expect(findings.map(said)).toEqual([
    `entries ${stale} bytes: an admissible entry, not stale-source-version`,
    `entries ${moved} bytes: an admissible entry, not another-pack`,
  ]);
});

test("a version of a pack after one that cannot be read is judged by what can", async () => {
  const first = ledger.append("pack", PACK);
  ledger.append("pack", { ...PACK, source_version: "2" });
  await ledger.load(db.owner);
  await db.superuser`alter table entries disable trigger entries_append_only`;
  await db.superuser`
    update entries set bytes = bytes || convert_to(' ', 'UTF8') where index = ${first.index}`;
  const { findings } = await run();
  expect(new Set(findings.map(({ index }) => index))).toEqual(new Set([String(first.index)]));
});

test("time that runs backwards is named", async () => {
  ledger.now -= 1;
  const { index } = ledger.report(agent, { job: 1, runner: HOSTED });
  const { findings } = await run();
  expect(findings).toMatchObject([{ table: "entries", column: "at", index: String(index) }]);
});

test("L36: with no log at all nothing is verified, and that is no pass", async () => {
  const empty = await freshDatabase();
  let summary: Summary | undefined;
  for await (const event of check({ sql: empty.reader }, { hash: sha256 })) {
    if (event.kind === "summary") summary = event;
  }
  await empty.drop();
  expect(summary).toMatchObject({ logs: 0, entries: "0", findings: 0, exit: 2 });
});

test("an entry of a kind that this version does not know is never a pass", async () => {
  ledger.report(agent, { job: 1, runner: HOSTED });
  ledger.appendUnknown("opening_balance");
  const { findings, summary } = await run();
  expect(findings).toEqual([]);
  expect(summary).toMatchObject({ unread: 1, exit: 2 });
});
