/** One build's proof, and a watch, by the auditor's program against the service. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { command, openHome } from "../audit/command.ts";
import { ask } from "./house.ts";
import { openServedLog, type ServedLog } from "./served-log.ts";

const home = openHome();
let house: ServedLog;
let url: string;
let vkey: string[];
let trust: string[];

beforeAll(async () => {
  house = await openServedLog();
  url = `${house.url}/logs/${house.log}`;
  const token = join(home.folder, "auditor.jwt");
  writeFileSync(token, `${house.auditor}\n`);
  vkey = ["--vkey", house.vkey];
  trust = [...vkey, "--token-file", token];
});

afterAll(async () => {
  home.remove();
  await house.close();
});

const file = (name: string): string => join(home.folder, name);

/** The proof of the agent's key: that of the first entry of this kind. */
async function keyProof(): Promise<string> {
  for (let index = 0; ; index += 1) {
    const out = file(`entry-${index}`);
    const proved = await command("prove", url, ...trust, "--index", String(index), "--out", out);
    if (proved.exit !== 0) throw new Error(proved.out + proved.err);
    const checked = await command("check-proof", out, ...vkey, "--json");
    if (JSON.parse(checked.out).kind === "key") return out;
  }
}

test("the proof in the service's answer is checked offline, and is the one that the program makes", async () => {
  const { json, text } = await ask(house, `GET /v1/jobs/${house.log}/7`, { token: house.auditor });
  writeFileSync(file("job.json"), text);
  const [usage] = json["usages"] as [{ index: string; proof: string }];
  writeFileSync(file("served.tlog-proof"), usage.proof);
  const prove = ["prove", url, ...trust, "--job", "7", "--out", file("made.tlog-proof")];
  expect(await command(...prove)).toMatchObject({ exit: 0, err: "" });
  expect(readFileSync(file("made.tlog-proof"), "utf8")).toBe(usage.proof);
  const given = ["--key-proof", await keyProof(), "--job", file("job.json")];
  const checked = await command("check-proof", file("served.tlog-proof"), ...vkey, ...given);
  expect(checked).toMatchObject({ exit: 0, err: "", out: expect.stringContaining("job 7 of") });
  const { text: other } = await ask(house, `GET /v1/jobs/${house.log}/8`, { token: house.auditor });
  writeFileSync(file("other.json"), other);
  const shown = ["check-proof", file("served.tlog-proof"), ...vkey, "--job", file("other.json")];
  expect(await command(...shown)).toMatchObject({ exit: 1 });
});

test("the service's log is watched while it grows", async () => {
  const watch = ["watch", url, ...trust, "--state", file("watch"), "--once"];
  expect(await command(...watch)).toMatchObject({
    exit: 0,
    err: "",
    out: expect.stringContaining(`${house.last} entries`),
  });
  const size = await house.submit(301, 320);
  expect(await command(...watch)).toMatchObject({
    exit: 0,
    out: expect.stringContaining(`${size} entries, consistent with all that was seen`),
  });
});
