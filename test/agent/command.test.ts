import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { agentCommand } from "../../src/agent/command.ts";
import { Host } from "./host.ts";
import { TestLog } from "./log.ts";
import { agentProcess, runAgent } from "./process.ts";
import { usageLine } from "./records.ts";
import { FakeService, LOG } from "./service.ts";

let host: Host;
let service: FakeService;
let server: string;

beforeEach(async () => {
  host = new Host();
  service = new FakeService();
  server = await service.start();
});

afterEach(async () => {
  await service.stop();
  rmSync(host.root, { recursive: true });
});

const state = () => ["--state", host.state];
const claim = () =>
  runAgent(["claim", ...state(), "--server", server, "--log", LOG, "--token", "-"], {
    input: "a-token\n",
  });

test("claim, import, rotate and status do on the command line what they say", async () => {
  expect(await claim()).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^Key .{43} now speaks for 1 runners/),
  });
  host.write(
    `${usageLine()}\nfoo\n${usageLine({ duration: "-1" })}\n${usageLine({ uniqueId: "else" })}\n`,
  );
  const imported = await runAgent(["import", host.logs, ...state()]);
  expect(imported.stderr).toMatch(/byte \d+: malformed \(not JSON\)\n/);
  expect(imported.stdout.split("\n").slice(0, 3)).toEqual([
    "4 lines of 1 files: 1 signed, 1 rejected, 1 malformed.",
    expect.stringContaining("1 accepted, 0 duplicate, 0 conflict, 0 held, 0 refused."),
    expect.stringContaining("1 lines wait for the enrolment of their instance"),
  ]);
  const again = await runAgent(["import", host.logs, ...state(), "--json"]);
  expect(JSON.parse(again.stdout)).toMatchObject({ lines: 0, unrouted: 1, total: { signed: 0 } });
  const rotated = await runAgent(["rotate", ...state(), "--json"]);
  const status = await runAgent(["status", ...state(), "--json"]);
  expect(JSON.parse(status.stdout)).toMatchObject({
    enrolments: [
      {
        log: LOG,
        kid: JSON.parse(rotated.stdout).keys[0].new,
        counter: "0",
        spool: 0,
        codes: { accepted: 1 },
      },
    ],
    malformed: 1,
    unrouted: 1,
  });
});

test.each(["claim", "import", "rotate", "receipts", "trust", "status"])(
  "%s --help shows an example",
  (name) => {
    let help = "";
    const command = agentCommand().commands.find((each) => each.name() === name);
    command?.configureOutput({ writeOut: (text) => (help += text) }).outputHelp();
    expect(help).toContain(`$ minutebook agent ${name} `);
  },
);

test("receipts and trust do on the command line what they say, and a broken promise is exit status 1", async () => {
  const ledger = new TestLog(LOG);
  await claim();
  host.write(`${usageLine()}\n`);
  await host.import();
  const unknown = await runAgent(["receipts", ...state()]);
  expect(unknown).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("No key of the log is known: nothing can be proven"),
  });
  expect((await runAgent(["status", ...state()])).stdout).toContain("nothing can be proven");
  service.ledger = ledger;
  service.forget();
  const keys = join(host.root, "minutebook.vkeys");
  writeFileSync(keys, `${ledger.vkey}\n${ledger.receiptVkey}\n`);
  const trusted = await runAgent(["trust", ...state(), "--log", LOG, "--vkey", keys, "--json"]);
  expect(JSON.parse(trusted.stdout)).toMatchObject({
    trust: { origin: ledger.origin, checkpoint_vkeys: [ledger.vkey] },
  });
  await host.import();
  ledger.seal();
  const proven = await runAgent(["receipts", "--check", ...state()]);
  expect(proven).toMatchObject({ status: 0, stderr: "proving: 1 of 1 receipts\n" });
  expect(proven.stdout).toMatch(new RegExp(`^log .* proven .*\n${LOG} +1 +0 +0 +0 +0 +0\n`));
  expect(proven.stdout).toContain("1 of 1 reports proven, under a checkpoint of 1 entries.");
  host.write(`${usageLine()}\n`);
  await host.import();
  ledger.entries[1] = Uint8Array.of(1);
  ledger.seal();
  const broken = await runAgent(["receipts", "--check", ...state(), "--json"]);
  expect(broken.status).toBe(1);
  expect(JSON.parse(broken.stdout)).toMatchObject({
    logs: [{ log: LOG, promises: { broken: 1 }, evidence: [expect.stringMatching(/\.json$/)] }],
  });
  expect((await runAgent(["trust", ...state(), "--log", LOG])).status).toBe(2);
});

test("what a person can mend is one line and exit status 1, whatever the server says", async () => {
  service.misbehaviours.push((_, response) => {
    response.writeHead(410);
    response.end('{"code":"token-expired","title":"\\u001b[2J\\u009bToo late"}');
    return true;
  });
  const refused = await claim();
  expect(refused).toMatchObject({ status: 1, stdout: "" });
  expect(refused.stderr).toMatch(
    /^refused: http:\S+ refused the claim: 410, token-expired \( \[2J Too late\)\.\n$/,
  );
  expect(refused.stderr).not.toContain("a-token");
  const unclaimed = await runAgent(["rotate", ...state()]);
  expect(unclaimed).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^not-enrolled: No key is enrolled here/),
  });
});

test("Ctrl-C while the server is away ends at once, and says that nothing is lost", async () => {
  await claim();
  host.write(`${usageLine()}\n`);
  await service.stop();
  const child = agentProcess(["import", host.logs, ...state()]);
  let said = "";
  child.stderr.on("data", (chunk) => {
    // Once only: a second Ctrl-C ends the process as it is.
    if (!said.includes("next try") && String(chunk).includes("next try")) child.kill("SIGINT");
    said += chunk;
  });
  const [status] = await once(child, "close");
  expect(status).toBe(1);
  expect(said).toContain("stopped: nothing is lost; run again to go on.");
  await service.start();
});
