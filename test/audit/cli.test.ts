import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { compiled } from "../compile.ts";
import { filesOf, vkeyText } from "./archive.ts";
import { smallLog } from "./honest.ts";
import { LOG_ID } from "./log.ts";

const HOME = mkdtempSync(join(tmpdir(), "audit-cli-"));
const PROGRAM = compiled(new URL("../../audit/cli.ts", import.meta.url));
const VERIFY = ["verify", HOME, "--vkey", vkeyText()];

beforeAll(() => {
  for (const [path, bytes] of filesOf(smallLog())) {
    mkdirSync(dirname(join(HOME, LOG_ID, path)), { recursive: true });
    writeFileSync(join(HOME, LOG_ID, path), bytes);
  }
});
afterAll(() => rmSync(HOME, { recursive: true }));

async function program(
  stdout: number | "ignore" | "closed",
  args = VERIFY,
): Promise<{ status: number | null; err: string }> {
  const stdio = ["ignore", stdout === "closed" ? "pipe" : stdout, "pipe"] as const;
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: [...stdio] });
  if (stdout === "closed") child.stdout?.destroy();
  let err = "";
  child.stderr?.setEncoding("utf8").on("data", (text) => {
    err += text;
  });
  const [status] = await once(child, "close");
  return { status, err };
}

test("the program ends with the status of the outcome", async () => {
  expect(await program("ignore")).toEqual({ status: 0, err: "" });
  expect((await program("ignore", ["verify", join(HOME, "nowhere")])).status).toBe(2);
});

test("an outcome that cannot be written is no verdict, and one line", async () => {
  const full = openSync("/dev/full", "w");
  const spaceless = await program(full);
  closeSync(full);
  expect(spaceless).toEqual({
    status: 2,
    err: expect.stringMatching(/^could not look: .*ENOSPC.*\n$/),
  });
  const closed = await program("closed");
  expect(closed).toEqual({
    status: 2,
    err: expect.stringMatching(/^could not look: .*EPIPE.*\n$/),
  });
});
