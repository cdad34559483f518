/** Retention of a log whose key was rotated. */
import { expect, onTestFinished, test } from "vitest";
import { encodeEntry, GENESIS_PREV } from "../../../src/core/entry.ts";
import { leafHash } from "../../../src/core/hash.ts";
import { formatVkey } from "../../../src/core/note.ts";
import { instantText } from "../../../src/core/unit.ts";
import { retain } from "../../../src/flow/log/retain.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { insertEntries } from "../../../src/store/entries.ts";
import { freshDatabase } from "../../postgres.ts";
import { CHAIN_START, Chain, checkpointed, sealerOf, vkeyOf } from "../chain.ts";
import { archiveFolder } from "../folder.ts";

const MINUTE = 60_000;
const RETIRED_AT = 6;

test("kept is the last checkpoint that a retired key has signed, which leads to the key after it", async () => {
  const db = await freshDatabase();
  onTestFinished(() => db.drop());
  const chain = new Chain(1);
  const sealer = sealerOf(db.writer, await archiveFolder());
  for (let size = 1; size <= 12; size += 1) {
    sealer.now = CHAIN_START + (size - 1) * 4 * MINUTE;
    if (size > RETIRED_AT && chain.entries.length === RETIRED_AT) {
      const retirement = retirementAfter(chain);
      chain.entries.push(retirement);
      const at = instantText(CHAIN_START);
      await db.writer.begin((tx) => insertEntries(tx, chain.log, at, [retirement]));
    }
    await chain.growTo(db.writer, size);
    await seal({ ...sealer, log: chain.log });
  }
  sealer.now = CHAIN_START + 200 * MINUTE;
  while (await retain({ ...sealer, log: chain.log }));
  expect(await checkpointed(db.reader, chain.log)).toEqual([3n, 5n, 6n, 8n, 10n, 12n]);
});

function retirementAfter(chain: Chain): Chain["entries"][number] {
  const [kind, index, prev] = ["log_key", chain.size, chain.leaves.at(-1) ?? GENESIS_PREV] as const;
  const { name, publicKey } = vkeyOf(chain.log);
  const body = {
    approval: "",
    by: "p",
    purpose: "checkpoint",
    salt: "AAAAAAAAAAAAAAAAAAAAAA==",
    state: "retired",
    vkey: formatVkey(name, publicKey),
  } as const;
  const at = instantText(CHAIN_START);
  const bytes = encodeEntry({ at, body, index, kind, log: chain.log, prev });
  return { index, kind, prev, bytes, leaf: leafHash(bytes) };
}
