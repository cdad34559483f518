/** Logs at the guard: a database, a copy of it that was left behind, and an archive between them. */
import { expect } from "vitest";
import { type Sealer, seal } from "../../src/flow/log/seal.ts";
import { lockHead } from "../../src/store/heads.ts";
import type { FreshDatabase } from "../postgres.ts";
import { Chain, checkpointed, sealerOf } from "./chain.ts";
import { archived, archiveFolder } from "./folder.ts";

export const behind = { code: "log-behind" };
export const unavailable = { code: "archive-unavailable" };

/** What append does before it writes: lock the head, and ask. */
export async function ask({ sql, guard }: Sealer, log: string, copy?: string): Promise<void> {
  await sql.begin(async (tx) => {
    const head = await lockHead(tx, log);
    if (head === undefined) throw new Error("no such log");
    await guard.assertWritable(tx, log, copy ? { ...head, copy } : head);
  });
}

/** A log of 20 entries, sealed at 10 and at 20. */
export async function sealedAtTwenty(
  db: FreshDatabase,
  number: number,
): Promise<{ chain: Chain; root: string }> {
  const chain = new Chain(number);
  const root = await archiveFolder();
  const sealer = sealerOf(db.writer, root);
  for (const size of [10, 20]) {
    await chain.growTo(db.writer, size);
    await seal({ ...sealer, log: chain.log });
  }
  return { chain, root };
}

/** The same log as a copy of the database has it: as it was at its seal of 10 entries, then gone another way if it is to. */
export async function restoredAtTen(
  copy: FreshDatabase,
  number: number,
  size = 10,
): Promise<Chain> {
  const chain = new Chain(number, 10);
  await chain.growTo(copy.writer, 10);
  const elsewhere = sealerOf(copy.writer, await archiveFolder());
  await seal({ ...elsewhere, log: chain.log });
  await chain.growTo(copy.writer, size);
  return chain;
}

/** A new process on this database and archive refuses, and leaves the archive as it was. */
export async function expectRefused(at: FreshDatabase, root: string, chain: Chain): Promise<void> {
  const before = await archived(root);
  const sealer = sealerOf(at.writer, root);
  await expect(ask(sealer, chain.log)).rejects.toMatchObject(behind);
  expect(sealer.guard.state().get(chain.log)).toBe("log-behind");
  const sizes = await checkpointed(at.reader, chain.log);
  await chain.growTo(at.writer, chain.entries.length + 1);
  const other = sealerOf(at.writer, root);
  await expect(seal({ ...other, log: chain.log })).rejects.toMatchObject(behind);
  await expect(ask(other, chain.log)).rejects.toMatchObject(behind);
  expect(await checkpointed(at.reader, chain.log)).toEqual(sizes);
  expect(await archived(root)).toEqual(before);
}
