import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { Hash } from "../../../src/core/hash.ts";
import { decodeUtf8, encodeUtf8 } from "../../../src/core/text.ts";
import { textOf } from "../../../src/flow/log/cosigned.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { submit } from "../../../src/flow/log/submit.ts";
import { cosignaturePath } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { readCosigned } from "../../../src/store/cosignatures.ts";
import { readWitnessDoubts } from "../../../src/store/submissions.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { sealerOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";
import { TestWitness } from "../witness.ts";
import { cosignedBy, sealedLog } from "../witnessed.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

async function openWitness(name = "ada", seed = 61): Promise<TestWitness> {
  const witness = await new TestWitness(name, seed).listen();
  onTestFinished(() => witness.close());
  return witness;
}

let logs = 0;
const newLog = (...sizes: number[]) => sealedLog(db.writer, ++logs, sizes);

const rootAt = async (log: string, size: bigint): Promise<Hash> =>
  (await readCosigned(db.reader, log, size))?.root ?? new Uint8Array();

const asked = (witness: TestWitness) => witness.asked.map(({ old }) => old);

test("a witness cosigns each newest checkpoint, from the last that it cosigned on, across a full tile", async () => {
  const { chain, log, submitting, growTo } = await newLog(1, 5);
  const witness = await openWitness();
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(await submit(submitting, witness, log)).toBe("current");
  for (const size of [255, 256, 257, 600]) {
    await growTo(size);
    expect(await submit(submitting, witness, log)).toBe("cosigned");
  }
  expect(asked(witness)).toEqual([0n, 5n, 255n, 256n, 257n]);
  expect(await cosignedBy(db.reader, log, witness)).toEqual([5n, 255n, 256n, 257n, 600n]);
  const last = witness.last.get(`chain.test/${log}`);
  expect(last).toMatchObject({ size: 600n, root: naiveRoot(chain.leaves) });
});

test("what is stored is the witness's line, in the archive and in the table alike", async () => {
  const { log, submitting } = await newLog(3);
  const witness = await openWitness();
  await submit(submitting, witness, log);
  const stored = await readCosigned(db.reader, log, 3n);
  const line = witness.cosign(textOf(stored?.note ?? ""));
  const { name, id } = witness.vkey;
  expect(stored?.cosignatures).toEqual([{ name, key_id: id, line }]);
  const file = await submitting.archive.get(cosignaturePath(log, 3n, id));
  expect(decodeUtf8(file ?? new Uint8Array())).toBe(line);
});

test("a witness that knows more of the log than we were told says its size, and is asked once more from there", async () => {
  const { log, submitting, growTo } = await newLog(3);
  const witness = await openWitness();
  // Its answer was lost: it has cosigned, and we do not know.
  witness.deviate = () => ({ status: 500, body: "" });
  witness.last.set(`chain.test/${log}`, { size: 3n, root: await rootAt(log, 3n) });
  witness.deviate = (honest) => honest;
  await growTo(9);
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(asked(witness)).toEqual([0n, 3n]);
});

test("a witness that has cosigned this very checkpoint cosigns it again, without a proof", async () => {
  const { log, submitting } = await newLog(3);
  const witness = await openWitness();
  witness.last.set(`chain.test/${log}`, { size: 3n, root: await rootAt(log, 3n) });
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(witness.asked.map(({ old, proof }) => [old, proof])).toEqual([
    [0n, []],
    [3n, []],
  ]);
});

test("a witness that has lost what it knew starts anew", async () => {
  const { log, submitting, growTo } = await newLog(3);
  const witness = await openWitness();
  await submit(submitting, witness, log);
  witness.last.clear();
  await growTo(4);
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(asked(witness)).toEqual([0n, 3n, 0n]);
});

test("a witness that has cosigned more than we have means that we went back: refused, and said", async () => {
  const { log, submitting, growTo } = await newLog(3);
  const witness = await openWitness();
  witness.last.set(`chain.test/${log}`, { size: 8n, root: new Uint8Array(32) });
  await expect(submit(submitting, witness, log)).rejects.toMatchObject({
    reason: "witness-ahead",
    away: false,
  });
  expect(witness.asked.length).toBe(1);
  const { id } = witness.vkey;
  expect(await readWitnessDoubts(db.reader, [id])).toEqual({ ahead: 1n, conflicting: 0n });
  // As long as what it has seen and longer, but not the tree that it has seen.
  for (const size of [8, 20]) {
    await growTo(size);
    const refusal = { reason: "witness-conflict", away: false };
    await expect(submit(submitting, witness, log)).rejects.toMatchObject(refusal);
    expect(await readWitnessDoubts(db.reader, [id])).toEqual({ ahead: 1n, conflicting: 1n });
  }
});

test("what a witness lied about is over when it signs what we have", async () => {
  const { log, submitting } = await newLog(3);
  const witness = await openWitness("liar", 64);
  const headers = { "content-type": "text/x.tlog.size" };
  witness.deviate = () => ({ status: 409, body: `${2n ** 63n - 1n}\n`, headers });
  const { id } = witness.vkey;
  await expect(submit(submitting, witness, log)).rejects.toMatchObject({ reason: "witness-ahead" });
  witness.deviate = () => ({ status: 422, body: "" });
  await expect(submit(submitting, witness, log)).rejects.toMatchObject({
    reason: "witness-conflict",
  });
  expect(await readWitnessDoubts(db.reader, [id])).toEqual({ ahead: 1n, conflicting: 1n });
  witness.deviate = (honest) => honest;
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(await readWitnessDoubts(db.reader, [id])).toEqual({ ahead: 0n, conflicting: 0n });
});

test("who died between archive and table is taken up: the row is of the file, and nobody is asked again", async () => {
  const { log, submitting, growTo } = await newLog(3);
  const witness = await openWitness();
  const dying = { ...submitting, sql: failingInserts(submitting.sql) };
  await expect(submit(dying, witness, log)).rejects.toThrow("died");
  expect(await cosignedBy(db.reader, log, witness)).toEqual([]);
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(witness.asked.length).toBe(1);
  expect(await cosignedBy(db.reader, log, witness)).toEqual([3n]);

  // The log may have gone on meanwhile: then the witness names the size that has a file and no row.
  await growTo(5);
  await expect(submit(dying, witness, log)).rejects.toThrow("died");
  await growTo(9);
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  expect(await cosignedBy(db.reader, log, witness)).toEqual([3n, 5n, 9n]);
});

function failingInserts<Sql extends typeof db.writer>(sql: Sql): Sql {
  return new Proxy(sql, {
    apply: (query, self, parts: [TemplateStringsArray]) => {
      if (parts[0].join("").includes("insert into cosignatures")) throw new Error("died");
      return Reflect.apply(query, self, parts);
    },
  });
}

test("L28: a cosignature that comes late changes nothing of what is in the archive", async () => {
  const { log, submitting } = await newLog(3);
  const witness = await openWitness();
  const file = cosignaturePath(log, 3n, witness.vkey.id);
  const text = textOf((await readCosigned(db.reader, log))?.note ?? "");
  const first = encodeUtf8(witness.cosign(text, witness.time - 60n));
  const { archive } = submitting;
  // Another process stores its own while ours is on its way.
  const slow = {
    ...archive,
    create: async (path: string, bytes: Uint8Array) => {
      await archive.create(path, first);
      return await archive.create(path, bytes);
    },
  };
  expect(await submit({ ...submitting, archive: slow }, witness, log)).toBe("cosigned");
  expect(new Uint8Array((await archive.get(file)) ?? [])).toEqual(first);
  const stored = await readCosigned(db.reader, log, 3n);
  expect(stored?.cosignatures.map(({ line }) => encodeUtf8(line))).toEqual([first]);
});

test("a file in the archive that is no cosignature of this checkpoint is said, and never believed", async () => {
  const { log, submitting } = await newLog(3);
  const witness = await openWitness();
  await submitting.archive.create(cosignaturePath(log, 3n, witness.vkey.id), encodeUtf8("x\n"));
  const refusal = { reason: "archived-otherwise" };
  await expect(submit(submitting, witness, log)).rejects.toMatchObject(refusal);
  expect(witness.asked).toEqual([]);
  expect(await cosignedBy(db.reader, log, witness)).toEqual([]);
});

test("a log of which the archive has lost a tile is submitted to nobody with a proof that does not hold", async () => {
  const { log, submitting, growTo, chain } = await newLog(3);
  const witness = await openWitness();
  await submit(submitting, witness, log);
  await growTo(300);
  const empty = folderArchive(await archiveFolder());
  await expect(submit({ ...submitting, archive: empty }, witness, log)).rejects.toThrow();
  expect(witness.asked.length).toBe(1);
  await seal({ ...sealerOf(db.writer, submitting.archive), log: chain.log });
  expect(await submit(submitting, witness, log)).toBe("cosigned");
});
