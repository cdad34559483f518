/** What stands beside the entries: checkpoints without a row, and what witnesses signed of them. */
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { cosign } from "../../../src/core/cosignature.ts";
import { formatVkey, linesOf, parseVkey, type Vkey } from "../../../src/core/note.ts";
import { encodeUtf8 } from "../../../src/core/text.ts";
import { recover } from "../../../src/flow/log/recover.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { cosignaturePath } from "../../../src/store/archive.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { freshDatabase } from "../../postgres.ts";
import { testKey } from "../../signing.ts";
import { closeHouse, type Door, type House, openHouse } from "../door.ts";
import { begun, expectProven, fill, recoveringOn, restore, sealerOn } from "../restored.ts";

let house: House;
let door: Door;
beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});
afterAll(() => closeHouse(house));

const WITNESS = { name: "witness.example", ...testKey(61) };
const STRANGER = { name: "stranger.example", ...testKey(62) };

function vkeyOf({ name, publicKey }: typeof WITNESS): Vkey {
  const vkey = parseVkey(formatVkey(name, publicKey, "cosignature"));
  if (vkey === undefined) throw new Error("no vkey");
  return vkey;
}

async function sealTwice(
  unique_id: string,
  seed: number,
): Promise<{ log: string; sizes: bigint[] }> {
  const log = await begun(door, unique_id, seed);
  const sizes: bigint[] = [];
  for (const count of [10, 20]) {
    await fill(door, log, seed, count, count * 100);
    const sealed = await seal({ ...sealerOn(house.database.writer, house.archive), log });
    sizes.push(sealed?.size ?? 0n);
  }
  return { log, sizes };
}

test("cosignatures of the policy's witnesses come back with their checkpoints, if they verify", async () => {
  const { log, sizes } = await sealTwice("cosigned", 1);
  const archive = folderArchive(house.archive);
  const rows = await house.database.reader<{ size: bigint; note: string }[]>`
    select size, note from checkpoints where log = ${log} order by size`;
  const forged = vkeyOf(STRANGER);
  for (const { size, note } of rows) {
    const text = linesOf(note)?.text ?? "";
    const line = cosign(WITNESS, text, 1_795_000_000n);
    await archive.create(cosignaturePath(log, size, vkeyOf(WITNESS).id), encodeUtf8(line));
    await archive.create(cosignaturePath(log, size, forged.id), encodeUtf8(line));
  }
  const copy = await freshDatabase();
  const recovering = recoveringOn(copy.writer, house.archive, log);
  await recover({ ...recovering, witnesses: [vkeyOf(WITNESS), forged] });
  const stored = await copy.reader`select size, name from cosignatures order by size`;
  expect(stored.map((row) => ({ ...row }))).toEqual(
    sizes.map((size) => ({ size, name: WITNESS.name })),
  );
  await copy.drop();
});

test("a checkpoint whose sealer died before the row gets it, at a time between its neighbours", async () => {
  const { log, sizes } = await sealTwice("rowless", 2);
  const [first = 0n] = sizes;
  const copy = await freshDatabase();
  const cut = folderArchive(house.archive);
  const rowless = { ...cut, sizes: async (name: string) => (await cut.sizes(name)).slice(1) };
  await restore(copy, rowless, log);
  expect(await copy.reader`select size from checkpoints`).toHaveLength(1);
  expect(await restore(copy, house.archive, log)).toMatchObject({ checkpoints: 1 });
  const rows = await copy.reader<{ size: bigint; sealed_at: Date }[]>`
    select size, sealed_at from checkpoints order by size`;
  expect(rows.map(({ size }) => size)).toEqual(sizes);
  const [entry] = await copy.reader`select at from entries where index = ${first - 1n}`;
  expect(rows[0]?.sealed_at).toEqual(entry?.["at"]);
  expect(rows[0]?.sealed_at.getTime()).toBeLessThanOrEqual(rows[1]?.sealed_at.getTime() ?? 0);
  await expectProven(copy);
  await copy.drop();
});

test("checkpoints that retention took from the archive are no reason to refuse", async () => {
  const { log, sizes } = await sealTwice("retained", 3);
  const [first = 0n, second = 0n] = sizes;
  await rm(join(house.archive, log, "checkpoint", String(first)));
  const copy = await freshDatabase();
  expect(await restore(copy, house.archive, log)).toMatchObject({ after: second, checkpoints: 1 });
  await expectProven(copy);
  await copy.drop();
});
