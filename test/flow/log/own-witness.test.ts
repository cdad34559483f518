/** The service's way to a witness, and the witness that an auditor runs, against each other. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { startWitness } from "../../../audit/witness/server.ts";
import { WitnessStore } from "../../../audit/witness/store.ts";
import { formatVkey, parseVkey } from "../../../src/core/note.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { submit, type Witness } from "../../../src/flow/log/submit.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { testKey } from "../../signing.ts";
import { Chain, sealerOf, vkeyOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";
import { cosignedBy, type SealedLog, sealedLog } from "../witnessed.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

async function ownWitness({ log, submitting }: SealedLog): Promise<Witness> {
  const signer = { name: "own.test", ...testKey(62) };
  const folder = mkdtempSync(join(tmpdir(), "own-witness-"));
  const logKey = vkeyOf(log);
  const now = (): number => submitting.now;
  const server = await startWitness({
    host: "127.0.0.1",
    port: 0,
    signer,
    logs: new Map([[logKey.name, [logKey]]]),
    store: new WitnessStore({ folder, origins: [logKey.name], now }),
    now,
    onError: (error) => expect.unreachable(String(error)),
  });
  onTestFinished(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });
  const vkey = parseVkey(formatVkey(signer.name, signer.publicKey, "cosignature"));
  if (vkey === undefined) throw new Error("no key");
  return { name: "own", vkey, url: server.url };
}

test("an auditor's own witness cosigns what the service brings it, as long as the log grows", async () => {
  const sealed = await sealedLog(db.writer, 1, [1, 5]);
  const { growTo, log, submitting } = sealed;
  const witness = await ownWitness(sealed);
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(await submit(submitting, witness, log)).toBe("current");
  await growTo(300);
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(await cosignedBy(db.reader, log, witness)).toEqual([5n, 300n]);
});

test("an auditor's own witness refuses a log that went back, and one that went on otherwise", async () => {
  const sealed = await sealedLog(db.writer, 2, [9]);
  const witness = await ownWitness(sealed);
  await submit(sealed.submitting, witness, sealed.log);
  const restored = await freshDatabase();
  onTestFinished(() => restored.drop());
  const chain = new Chain(2, 4);
  const sealer = sealerOf(restored.writer, await archiveFolder());
  const submitting = { ...sealer, signal: new AbortController().signal };
  const refused = async (size: number): Promise<unknown> => {
    await chain.growTo(restored.writer, size);
    await seal({ ...sealer, log: chain.log });
    return submit(submitting, witness, chain.log).catch((error) => error.reason);
  };
  expect(await refused(5)).toBe("witness-ahead");
  expect(await refused(12)).toBe("witness-conflict");
  expect(await cosignedBy(restored.reader, chain.log, witness)).toEqual([]);
});
