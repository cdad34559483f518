/** From the proposal to the entry, as two persons do it at their terminals. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { dataFolder } from "../../src/command/folder.ts";
import { completed } from "../../src/command/propose.ts";
import { contentShape } from "../../src/core/approval.ts";
import { ACTIONS } from "../../src/core/control.ts";
import { ask, everybody, type House, openHouse } from "../http/house.ts";
import { testKey } from "../signing.ts";
import { minutebook } from "./terminal.ts";

let house: House;
let data: string;
let log: string;
let finance: string[];

beforeAll(async () => {
  house = await openHouse();
  // Tokens of commands are of now.
  house.clock.time = Date.now();
  data = await mkdtemp(join(tmpdir(), "minutebook-proposals-"));
  const { issuer } = dataFolder(data).keys;
  await mkdir(dirname(issuer), { recursive: true });
  const pem = testKey(31).privateKey.export({ format: "pem", type: "pkcs8" });
  await writeFile(issuer, pem, { mode: 0o600 });
  const json = {
    ...{ unique_id: "terminal", platform: "dotcom", control: "dual" },
    billing_from: "2026-01-01T00:00:00.000Z",
  };
  const made = await ask(house, "POST /v1/logs", { token: await everybody(), json });
  log = String(made.json["log"]);
  finance = await at("finance");
});

afterAll(async () => {
  await house.close();
  await rm(data, { recursive: true });
});

/** The options of somebody with this role. */
async function at(role: string): Promise<string[]> {
  const { stdout } = await minutebook(["token", "--data", data, "--role", role]);
  return ["--server", house.url, "--token", stdout.trim()];
}

async function proposed(content: object, action = "quota"): Promise<Record<string, string>> {
  const file = join(data, "asked.json");
  await writeFile(file, JSON.stringify(content));
  const args = ["propose", action, file, "--log", log, "--reason", "contract", "--ticket", "OPS-1"];
  const { status, stdout, stderr } = await minutebook([...args, ...finance, "--json"]);
  expect([status, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
}

let version = 0;
function limit(): object {
  version += 1;
  const minutes = { namespace_id: "7", monthly_minutes: "400", beyond: "stop", cap: "" };
  return { ...minutes, grace_minutes: "0", source: "hand", source_version: String(version) };
}

test("in development the local issuer signs the second person in", async () => {
  const { index = "" } = await proposed(limit());
  const args = ["approve", log, index, "--data", data, "--server", house.url];
  const same = await minutebook([...args, "--subject", "finance"]);
  expect([same.status, same.stderr]).toEqual([1, expect.stringContaining("same-person")]);
  const { status, stdout } = await minutebook(args);
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^Entry \d+: quota, by approval/)]);
});

test("elsewhere the approver is told with what to ask for a token, and brings it", async () => {
  const { index = "", nonce = "" } = await proposed(limit());
  const approver = await at("approver");
  const shown = await minutebook(["approve", log, index, ...approver]);
  expect(shown.stdout).toContain(`nonce=${nonce}&prompt=login`);
  expect(shown.stdout).toContain("scope=openid&");
  const minted = ["token", "--data", data, "--role", "approver", "--id-token", nonce];
  const file = join(data, "id-token.txt");
  await writeFile(file, (await minutebook(minted)).stdout);
  const args = ["approve", log, index, "--id-token", file, ...approver];
  const { status, stdout } = await minutebook(args);
  expect([status, stdout]).toEqual([0, expect.stringMatching(/^Entry \d+: quota, by approval/)]);
  const missing = await minutebook([...args.slice(0, 4), join(data, "none"), ...approver]);
  expect([missing.status, missing.stderr]).toEqual([2, expect.stringMatching(/^unreadable-file/)]);
});

test("a proposal is refused, taken back and listed", async () => {
  const [refused, withdrawn] = [await proposed(limit()), await proposed(limit())];
  const reason = ["--reason", "not agreed"];
  const said = await minutebook([
    ...["proposals", "refuse", log, refused["index"] ?? "", ...reason],
    ...(await at("approver")),
  ]);
  expect(said.stdout).toMatch(/^Entry \d+: the refusal of proposal/);
  const back = ["proposals", "withdraw", log, withdrawn["index"] ?? "", ...reason, ...finance];
  expect((await minutebook(back)).stdout).toMatch(/^Entry \d+: the withdrawal of proposal/);
  const { stdout } = await minutebook(["proposals", "list", "--log", log, ...finance]);
  const [header, first, second] = stdout.split("\n");
  expect(header).toMatch(/^index +at +action +state +reason +ticket +by$/);
  expect([first, second]).toEqual([
    expect.stringContaining("quota   withdrawn  contract  OPS-1"),
    expect.stringContaining("quota   refused    contract  OPS-1"),
  ]);
});

test("the token of an enrolment that was asked for is shown once, and its digest alone is on the log", async () => {
  const line = { machine_type: "small", runner_id: "1", runner_type: "instance" };
  const effective_from = "2026-01-01T00:00:00.000Z";
  const runner = { ...line, effective_from, tracking: "hosted", uuid: "billed" };
  const claim_until = new Date(Date.now() + 86_400_000).toISOString();
  const asked = { claim_until, namespaces: [], runners: [runner] };
  const { index = "", token = "" } = await proposed(asked, "enrolment");
  expect(token).toMatch(/^[\w-]{43}$/);
  const shown = await ask(house, `GET /v1/proposals/${log}/${index}`, { token: await everybody() });
  expect(shown.text).not.toContain(token);
  const content = JSON.parse(String(shown.json["content"]));
  expect(content).toMatchObject({ claim_until, token_sha256: expect.any(String) });
});

test.each(ACTIONS)(
  "the file that `propose %s --help` shows is one that is let in",
  async (action) => {
    const { stdout } = await minutebook(["propose", action, "--help"]);
    const shown = JSON.parse(/The file:\n( {2}\{\n.*?\n {2}\}\n)/s.exec(stdout)?.[1] ?? "");
    const options = { days: 7, reason: "contract", ticket: "OPS-1" };
    const { content } = completed(action, shown, options);
    expect(contentShape(action).safeParse(content).error).toBeUndefined();
  },
);

test("what the example of a file does not tell is said beside it, from the shape", async () => {
  const { stdout } = await minutebook(["propose", "quota", "--help"]);
  expect(stdout).toContain("  beyond is one of stop, bill.\n");
  expect(stdout).toContain('  cap may be "".\n');
  expect(stdout).toContain("  Without effective_from: at once.\n");
});

test("reason and ticket are said once, and a token that is made is good after the last moment to approve", async () => {
  const options = { days: 31, reason: "checked", ticket: "OPS-1" };
  const { content } = completed("hold_resolved", { hold: "42", outcome: "released" }, options);
  expect(content).toMatchObject({ reason: "checked", ticket: "OPS-1" });
  const { ticket } = completed("hold_resolved", { ticket: "OPS-2" }, options).content;
  expect(ticket).toBe("OPS-2");
  const line = { machine_type: "small", runner_id: "2", runner_type: "instance" };
  const runner = { ...line, effective_from: "2026-01-01T00:00:00.000Z", tracking: "hosted" };
  const asked = { namespaces: [], runners: [{ ...runner, uuid: "also billed" }] };
  const { expires_at = "", index = "" } = await proposed(asked, "enrolment");
  const shown = await ask(house, `GET /v1/proposals/${log}/${index}`, { token: await everybody() });
  const { claim_until } = JSON.parse(String(shown.json["content"]));
  expect(Date.parse(claim_until)).toBeGreaterThan(Date.parse(expires_at));
});
