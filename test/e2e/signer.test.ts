/** The service in production with all its keys elsewhere. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { formatVkey, openNote, parseVkey } from "../../src/core/note.ts";
import { readReceipt, verifyReceipt } from "../../src/core/receipt.ts";
import { instantText } from "../../src/core/unit.ts";
import { compiled } from "../compile.ts";
import { reported } from "../flow/door.ts";
import { ask, newAgent, newLogOn } from "../http/house.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import { openSite, type Site, serve } from "./process.ts";

let site: Site;
beforeAll(async () => {
  site = await openSite();
});
afterAll(() => site.remove());

const PROGRAM = compiled(new URL("../command/signing-program.ts", import.meta.url));
const FINISHED = instantText(Date.now() - 60_000);

function report(log: string, counter: number): string {
  const job = { id: String(counter) };
  return reported(1, log, { counter: String(counter), job, usage: { finished_at: FINISHED } });
}

/** Process ids of the signer, in the order of its starts. */
function signers(file: string): number[] {
  return readFileSync(file, "utf8").trim().split("\n").map(Number);
}

test("a signer that is killed amid traffic costs answers and nothing else, and none of its work is unsigned", async () => {
  const { database, folder, token } = site;
  const starts = join(folder, "starts");
  const { LOG_KEY_FILE: _, RECEIPT_KEY_FILE: __, ...environment } = site.environment;
  const words = [process.execPath, PROGRAM, starts];
  const service = await serve({ ...environment, SIGNER_COMMAND: JSON.stringify(words) });
  const log = await newLogOn(service, token, "keys elsewhere");
  await newAgent(service, log, 1, {}, token);
  const origin = `minutebook.localhost/${log}`;
  const key = (seed: number, name: string) => {
    const vkey = parseVkey(formatVkey(name, testKey(seed).publicKey));
    if (vkey === undefined) throw new Error("no key");
    return vkey;
  };
  const submit = async (counter: number): Promise<number> => {
    const { status, json } = await ask(service, "POST /v1/reports", { jose: report(log, counter) });
    const receipt = readReceipt(String(json["receipt"]));
    if (status === 201 && receipt !== undefined) {
      expect(verifyReceipt(receipt, key(72, `${origin}/receipt`), verifyByOpenssl)).toBe(true);
    }
    return status;
  };
  expect(await submit(1)).toBe(201);

  for (const counter of [2, 3]) {
    process.kill(signers(starts).at(-1) ?? 0, "SIGKILL");
    // 503 while it is away, and then as if nothing had been.
    await expect.poll(() => submit(counter), { timeout: 60_000 }).not.toBe(503);
    await expect.poll(() => signers(starts).length, { timeout: 60_000 }).toBe(counter);
  }
  expect(await service.end("SIGTERM")).toBe(0);

  const [head] = await database.reader`select size from heads where log = ${log}`;
  const notes = await database.reader<{ size: bigint; note: string }[]>`
    select size, note from checkpoints where log = ${log} order by size`;
  expect(notes.at(-1)?.size).toBe(head?.["size"]);
  for (const { note } of notes) {
    expect(openNote(note, [key(71, origin)], verifyByOpenssl)).toHaveProperty("text");
  }
  const [{ count } = { count: 0n }] = await database.reader<{ count: bigint }[]>`
    select count(*) from entries where log = ${log} and kind = 'usage'`;
  expect(count).toBe(3n);
  // It went with its service, of itself.
  for (const pid of signers(starts)) expect(() => process.kill(pid, 0)).toThrow("ESRCH");
});
