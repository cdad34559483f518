/** Logs that are sealed, and cosigned without anybody being asked. */
import { expect } from "vitest";
import { openNote } from "../../src/core/note.ts";
import { textOf } from "../../src/flow/log/cosigned.ts";
import { type Sealer, seal } from "../../src/flow/log/seal.ts";
import type { Submitting, Witness } from "../../src/flow/log/submit.ts";
import { cosignaturePath } from "../../src/store/archive.ts";
import type { Sql } from "../../src/store/connect.ts";
import { insertCosignature, readCosigned } from "../../src/store/cosignatures.ts";
import { verifyByOpenssl } from "../signing.ts";
import { Chain, sealerOf } from "./chain.ts";
import { archiveFolder } from "./folder.ts";
import type { TestWitness } from "./witness.ts";

export interface SealedLog {
  chain: Chain;
  log: string;
  /** What its checkpoints are submitted with; `now` is its clock. */
  submitting: Submitting & Pick<Sealer, "signerFor"> & { now: number };
  growTo(size: number): Promise<void>;
}

/** A log of its own in an archive of its own, sealed at each of these sizes. */
export async function sealedLog(
  sql: Sql,
  number: number,
  sizes: readonly number[],
): Promise<SealedLog> {
  const chain = new Chain(number);
  const sealer = sealerOf(sql, await archiveFolder());
  const growTo = async (size: number): Promise<void> => {
    await chain.growTo(sql, size);
    await seal({ ...sealer, log: chain.log });
  };
  for (const size of sizes) await growTo(size);
  const { signal } = new AbortController();
  return { chain, log: chain.log, submitting: Object.assign(sealer, { signal }), growTo };
}

/** A row for this checkpoint, over its own text or over another. */
export async function addCosignature(
  sql: Sql,
  log: string,
  size: bigint,
  witness: TestWitness,
  text?: string,
): Promise<string> {
  const checkpoint = await readCosigned(sql, log, size);
  if (checkpoint === undefined) throw new Error("no such checkpoint");
  const line = witness.cosign(text ?? textOf(checkpoint.note));
  const { name, id } = witness.vkey;
  await insertCosignature(sql, { log, size, name, key_id: id, line, time: witness.time });
  return line;
}

/** Sizes that this witness has rows for, ascending. */
export async function cosignedBy(sql: Sql, log: string, { vkey }: Witness): Promise<bigint[]> {
  const rows = await sql<{ size: bigint }[]>`
    select size from cosignatures where log = ${log} and key_id = ${vkey.id} order by size`;
  return rows.map(({ size }) => size);
}

/** Every row, and the file that it is of, holds the witness's own word on that checkpoint. */
export async function expectGenuine(
  sql: Sql,
  { log, submitting }: Pick<SealedLog, "log" | "submitting">,
  witness: Witness,
): Promise<void> {
  const { vkey } = witness;
  for (const size of await cosignedBy(sql, log, witness)) {
    const checkpoint = await readCosigned(sql, log, size);
    const text = textOf(checkpoint?.note ?? "");
    const line = checkpoint?.cosignatures[0]?.line ?? "";
    const opened = openNote(`${text}\n${line}`, [vkey], verifyByOpenssl);
    expect(opened).toMatchObject({ text, signatures: [{ vkey }] });
    const file = await submitting.archive.get(cosignaturePath(log, size, vkey.id));
    expect(Buffer.from(file ?? []).toString()).toBe(line);
  }
}
