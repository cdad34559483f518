/** Real processes, killed while they keep what a witness signed. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { seal } from "../../../src/flow/log/seal.ts";
import { submit } from "../../../src/flow/log/submit.ts";
import { compiled } from "../../compile.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { Chain, sealerOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";
import { TestWitness } from "../witness.ts";
import { cosignedBy, expectGenuine } from "../witnessed.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

const PROCESS = compiled(new URL("../submitting-process.ts", import.meta.url));

function start(root: string, { url }: TestWitness): ChildProcess {
  const args = [PROCESS, db.urls.writer, root, url];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return child;
}

test("a process killed between archive and table leaves a cosignature that the next one takes up", async () => {
  const chain = new Chain(1);
  const { log } = chain;
  const root = await archiveFolder();
  const sealer = sealerOf(db.writer, root);
  const submitting = { ...sealer, signal: new AbortController().signal };
  const witness = await new TestWitness("ada", 61).listen();
  onTestFinished(() => witness.close());
  const grow = async (): Promise<void> => {
    await chain.growTo(db.writer, chain.entries.length + 3);
    await seal({ ...sealer, log });
  };
  // Before the file, with it, before the row, after the row; then the same in the middle of a run.
  for (const lines of [1, 2, 3, 5, 8]) {
    await grow();
    const child = start(root, witness);
    let said = 0;
    let growing = Promise.resolve();
    child.stdout?.on("data", (chunk: Buffer) => {
      const rows = chunk.toString().split("\n").slice(0, -1);
      said += rows.length;
      if (said >= lines) child.kill("SIGKILL");
      else if (rows.includes("row done")) growing = growing.then(grow);
    });
    const [, signal] = await once(child, "exit");
    expect(signal).toBe("SIGKILL");
    await growing;
    await expectGenuine(db.reader, { log, submitting }, witness);
  }
  await submit(submitting, witness, log);
  expect((await cosignedBy(db.reader, log, witness)).at(-1)).toBe(chain.size);
  expect(witness.last.get(`chain.test/${log}`)?.size).toBe(chain.size);
  await expectGenuine(db.reader, { log, submitting }, witness);
});
