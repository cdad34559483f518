import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import { run } from "../../audit/command/program.ts";
import { cosign } from "../../src/core/cosignature.ts";
import { formatVkey } from "../../src/core/note.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, type Files, filesOf, signer, vkeyText } from "./archive.ts";
import { command, openHome, store as storeIn } from "./command.ts";
import { honestLog, smallLog } from "./honest.ts";
import { LOG_ID, OTHER_LOG_ID } from "./log.ts";

const home = openHome();
afterAll(() => home.remove());

/** Of every POSIX system; Node cannot make one. */
const MAKE_PIPE = "mkfifo";
const HONEST = filesOf(smallLog());
let folders = 0;
let folder = "";
beforeEach(() => {
  folder = join(home.folder, String(folders++));
  mkdirSync(folder);
});

function store(files: Files, id = LOG_ID): void {
  storeIn(folder, files, id);
}

test("an honest archive is proven, exit 0", async () => {
  store(filesOf(honestLog().log, [1, 9, honestLog().log.size]));
  const { exit, out, err } = await command("verify", folder, "--vkey", vkeyText());
  expect(out).toContain("PROVEN");
  expect({ exit, err }).toEqual({ exit: 0, err: "" });
});

test("one log of an archive is named as an argument or in the path; without, all are looked at", async () => {
  store(HONEST);
  store(filesOf(smallLog(OTHER_LOG_ID)), OTHER_LOG_ID);
  mkdirSync(join(folder, ".staging"));
  const vkeys = ["--vkey", vkeyText(), "--vkey", vkeyText(OTHER_LOG_ID)];
  const all = await command("verify", folder, ...vkeys, "--json");
  expect(all.exit).toBe(0);
  expect(JSON.parse(all.out).logs).toMatchObject([
    { log: LOG_ID, exit: 0, size: "7", checkpoints: 1, findings: { count: 0 } },
    { log: OTHER_LOG_ID, exit: 0 },
  ]);
  const one = ["verify", folder, LOG_ID, "--vkey", vkeyText()];
  expect((await command(...one)).exit).toBe(0);
  expect((await command("verify", join(folder, LOG_ID), "--vkey", vkeyText())).exit).toBe(0);
  // The other log's key is not given: one proven log is not all.
  expect((await command("verify", folder, "--vkey", vkeyText())).exit).toBe(2);
  // Its whole folder is gone.
  rmSync(join(folder, OTHER_LOG_ID), { recursive: true });
  const { exit, err, out } = await command("verify", folder, ...vkeys);
  expect([exit, out]).toEqual([2, expect.stringContaining("PROVEN")]);
  expect(err).toContain(`log test/${OTHER_LOG_ID}: could not look`);
  expect((await command(...one, "--vkey", vkeyText(OTHER_LOG_ID))).exit).toBe(0);
});

test("a finding is exit 1, with the first index named", async () => {
  store(HONEST);
  const path = join(folder, LOG_ID, "tile/entries/000.p/7");
  const bytes = Buffer.from(HONEST.get("tile/entries/000.p/7") ?? "");
  bytes[bytes.indexOf('"at"') + 10] = 0x31;
  writeFileSync(path, bytes);
  const text = await command("verify", folder, "--vkey", vkeyText());
  expect(text.exit).toBe(1);
  expect(text.out).toMatch(/FOUND: \d+ findings, the first entry 0/);
  const json = await command("verify", folder, "--vkey", vkeyText(), "--json");
  expect(JSON.parse(json.out).logs[0].findings.first).toMatchObject({ index: "0" });
});

test("keys come as texts or in files, one on each line", async () => {
  store(HONEST);
  const file = join(folder, "trusted.vkey");
  writeFileSync(file, `${vkeyText(OTHER_LOG_ID)}\n\n${vkeyText()}\n`);
  expect((await command("verify", folder, LOG_ID, "--vkey", file)).exit).toBe(0);
  writeFileSync(file, "not a key\n");
  expect((await command("verify", folder, "--vkey", file)).exit).toBe(2);
});

test("a policy names logs and witnesses, and a witness is no log", async () => {
  const note = Buffer.from(checkpointOf(smallLog(), 7)).toString();
  const { publicKey, sign } = testKey(71);
  const witness = { name: "north.example", publicKey, sign };
  const [text = ""] = note.split("\n\u2014");
  const line = cosign(witness, text, 1_764_000_000n);
  store(new Map(HONEST).set("checkpoint/7", Buffer.from(note + line)));
  const vkey = formatVkey(witness.name, publicKey, "cosignature");
  const file = join(folder, "policy");
  const verify = ["verify", folder, "--policy", file, "--json"];
  writeFileSync(file, `log ${vkeyText()}\nwitness north ${vkey}\nquorum north\n`);
  const { exit, out } = await command(...verify);
  expect([exit, JSON.parse(out).logs[0].witnessed]).toEqual([
    0,
    { size: "7", by: [{ name: "north", time: "1764000000" }] },
  ]);
  expect((await command(...verify, "--from", "3")).exit).toBe(0);
  writeFileSync(file, `log ${vkeyText()}\nquorum north\n`);
  expect(await command(...verify)).toMatchObject({
    exit: 2,
    err: expect.stringContaining("line 2"),
  });
  expect((await command("verify", folder, "--vkey", vkey)).exit).toBe(2);
  writeFileSync(file, `log ${vkeyText()}\nquorum none\n`);
  expect((await command(...verify)).exit).toBe(0);
});

test("a usage file is held against its log", async () => {
  store(HONEST);
  const name = join(folder, "usage.json");
  const usage = ["--usage", name];
  const figures = {
    jobs: "1",
    duration_ms: "60000",
    gross_compute_ms: "60000.000000",
    adjustment_compute_ms: "0.000000",
    compute_ms: "60000.000000",
    billable_compute_ms: "60000.000000",
    compute_minutes: "1.0000",
    amount_used: "1.00",
    shared_runners_duration: "60",
  };
  const rows = [{ billing_month: "2026-11-01", ...figures }];
  const asked = { query: {}, group: ["billing_month"] };
  const answer = { log: LOG_ID, as_of: "7", ...asked, rows, totals: figures };
  writeFileSync(name, JSON.stringify(answer));
  expect((await command("verify", folder, "--vkey", vkeyText(), ...usage)).exit).toBe(0);
  writeFileSync(name, JSON.stringify({ ...answer, totals: { ...figures, jobs: "2" } }));
  expect((await command("verify", folder, "--vkey", vkeyText(), ...usage)).exit).toBe(1);
  writeFileSync(name, JSON.stringify({ ...answer, log: OTHER_LOG_ID }));
  expect((await command("verify", folder, "--vkey", vkeyText(), ...usage)).exit).toBe(2);
  writeFileSync(name, "{}");
  expect((await command("verify", folder, "--vkey", vkeyText(), ...usage)).exit).toBe(2);
});

test("what cannot be looked at is exit 2, and never a pass", async () => {
  expect((await command("verify", folder, "--vkey", vkeyText())).exit).toBe(2);
  expect((await command("verify", join(folder, "none"), "--vkey", vkeyText())).exit).toBe(2);
  mkdirSync(join(folder, LOG_ID));
  expect((await command("verify", folder, "--vkey", vkeyText())).exit).toBe(2);
  store(HONEST);
  expect((await command("verify", folder)).exit).toBe(2);
  expect((await command("verify", folder, OTHER_LOG_ID, "--vkey", vkeyText())).exit).toBe(2);
  expect((await command("verify", folder, "--vkey", "nowhere")).exit).toBe(2);
  expect((await command("verify", folder, "--vkey", vkeyText(), "--usage", "nowhere")).exit).toBe(
    2,
  );
  expect((await command("verify")).exit).toBe(2);
  expect((await command("verify", folder, "--nonsense")).exit).toBe(2);
  expect((await command("frobnicate")).exit).toBe(2);
});

test("a file that cannot be read leaves no verdict", async () => {
  store(HONEST);
  const path = join(folder, LOG_ID, "tile/0/000.p/7");
  rmSync(path);
  symlinkSync(path, path); // ELOOP, also for root, whom no mode keeps out
  const { exit, err } = await command("verify", folder, "--vkey", vkeyText());
  expect({ exit, err }).toMatchObject({ exit: 2, err: expect.stringContaining("ELOOP") });
});

test("a kept checkpoint comes as a file, and one that nobody trusted signed is no verdict", async () => {
  store(HONEST);
  const name = join(folder, "kept.note");
  const verify = ["verify", folder, "--vkey", vkeyText(), "--checkpoint", name];
  writeFileSync(name, checkpointOf(smallLog(), 5));
  expect((await command(...verify)).exit).toBe(0);
  writeFileSync(name, checkpointOf(smallLog(), 5, new Uint8Array(32)));
  const contradicted = await command(...verify);
  expect([contradicted.exit, contradicted.out]).toEqual([
    1,
    expect.stringContaining(`${name}: checkpoint-kept`),
  ]);
  writeFileSync(name, checkpointOf(smallLog(), 5, undefined, [signer(LOG_ID, testKey(9))]));
  expect((await command(...verify)).exit).toBe(2);
  const other = checkpointOf(smallLog(OTHER_LOG_ID), 5);
  writeFileSync(name, other);
  expect((await command(...verify, "--vkey", vkeyText(OTHER_LOG_ID))).exit).toBe(2);
});

test("what is no regular file, or larger than its kind may be, is a finding and costs nothing", async () => {
  store(HONEST);
  const verify = ["verify", folder, "--vkey", vkeyText()];
  const pipe = join(folder, LOG_ID, "checkpoint/5");
  execFileSync(MAKE_PIPE, [pipe]);
  expect(await command(...verify)).toMatchObject({
    exit: 1,
    out: expect.stringContaining("checkpoint/5: checkpoint-malformed"),
  });
  rmSync(pipe);
  for (const path of ["checkpoint/5", "tile/0/000", "tile/entries/000"]) {
    const file = join(folder, LOG_ID, path);
    writeFileSync(file, "");
    truncateSync(file, 2 ** 33); // sparse; more than one Uint8Array of Node 20 holds
    expect((await command(...verify)).exit).toBe(1);
    rmSync(file);
  }
  expect((await command(...verify)).exit).toBe(0);
});

test("a fault of the program itself is no verdict, and one line", async () => {
  store(HONEST);
  let err = "";
  const exit = await run(["verify", folder, "--vkey", vkeyText()], {
    out: () => {
      throw new TypeError("it fell\n  over");
    },
    err: (text) => {
      err += text;
    },
    progress: false,
  });
  expect({ exit, err }).toEqual({
    exit: 2,
    err: `log ${LOG_ID}: could not look: TypeError: it fell over\n`,
  });
});

test("help says what the exit status means", async () => {
  const { exit, out } = await command("verify", "--help");
  expect(exit).toBe(0);
  expect(out).toContain("Exit status: 0 all proven, 1 a finding, 2 could not look");
});
