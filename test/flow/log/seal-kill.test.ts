/** Real processes, killed while they seal. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { compiled } from "../../compile.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, sealerOf } from "../chain.ts";
import { archived, archiveFolder, naiveFiles, openArchived } from "../folder.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const PROCESS = compiled(new URL("../sealing-process.ts", import.meta.url));

function start(root: string): ChildProcess {
  const child = spawn(process.execPath, [PROCESS, db.urls.writer, root], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return child;
}

/** Runs two sealers over a growing log, and kills both when they have said that many lines. */
async function killAfter(lines: number, root: string, chain: Chain): Promise<void> {
  const children = [start(root), start(root)];
  const exits = children.map((child) => once(child, "exit"));
  let said = 0;
  let growing = Promise.resolve();
  for (const child of children) {
    child.stdout?.on("data", (chunk: Buffer) => {
      said += chunk.toString().split("\n").length - 1;
      if (said >= lines) for (const each of children) each.kill("SIGKILL");
      growing = growing.then(() => chain.growTo(db.writer, chain.entries.length + 37));
    });
  }
  await Promise.all(exits);
  await growing;
}

test("processes killed with -9 in the middle of seals leave one log, every checkpoint of it true", async () => {
  const chain = new Chain(1);
  const root = await archiveFolder();
  await chain.growTo(db.writer, 1);
  for (const lines of [2, 3, 28]) await killAfter(lines, root, chain);
  await seal({ ...sealerOf(db.writer, root), log: chain.log });
  await expectTruth(root, chain);
});

async function expectTruth(root: string, chain: Chain): Promise<void> {
  const files = await archived(root);
  const sizes = Array.from(files.keys(), (path) => /checkpoint\/(\d+)$/.exec(path)?.[1])
    .filter((size) => size !== undefined)
    .map(Number);
  expect(sizes.length).toBeGreaterThan(2);
  for (const size of sizes) {
    const checkpoint = openArchived(chain, files.get(`${chain.log}/checkpoint/${size}`));
    expect(checkpoint?.root).toEqual(naiveRoot(chain.leaves.slice(0, size)));
  }
  for (const [path, bytes] of naiveFiles(chain, sizes)) expect(files.get(path), path).toBe(bytes);
  const rows = await db.reader<{ size: bigint; note: string }[]>`
    select size, note from checkpoints where log = ${chain.log}`;
  for (const { size, note } of rows) {
    const stored = files.get(`${chain.log}/checkpoint/${size}`);
    expect(Buffer.from(stored ?? "", "base64").toString()).toBe(note);
  }
}
