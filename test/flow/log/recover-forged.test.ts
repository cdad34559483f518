/** What somebody put into the archive past the newest checkpoint, where no signature of the log's covers it. */
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { decodeBundle, encodeBundle } from "../../../src/core/bundle.ts";
import { type Body, type Entry, encodeEntry, type Kind } from "../../../src/core/entry.ts";
import { leafHash } from "../../../src/core/hash.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { naiveRoot } from "../../core/merkle.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { closeHouse, type Door, entriesOf, type House, openHouse, reported } from "../door.ts";
import { archived, archiveFolder } from "../folder.ts";
import { begun, expectProven, fill, restore, sealerOn } from "../restored.ts";

let house: House;
let door: Door;
let log: string;
/** Sealed to here; the log goes on with what a dead sealer archived, which is genuine. */
let size: bigint;
let entries: Entry[];
let copy: FreshDatabase;
let root: string;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
  log = await begun(door, "forged", 1);
  await fill(door, log, 1, 5, 1_000);
  size = (await seal({ ...sealerOn(house.database.writer, house.archive), log }))?.size ?? 0n;
  await fill(door, log, 1, 3, 2_000);
  entries = await entriesOf(house.database.reader, log);
});
afterAll(() => closeHouse(house));

beforeEach(async () => {
  copy = await freshDatabase();
  root = await archiveFolder();
  await cp(house.archive, root, { recursive: true });
});
afterEach(() => copy.drop());

type Forged = { kind: Kind; body: object };

/** Puts the sealed entries and these behind them, linked as append links them; their leaves. */
async function archive(tail: readonly Forged[]): Promise<Uint8Array[]> {
  const bundle = join(root, log, "tile/entries/000.p");
  const bytes = decodeBundle(new Uint8Array(await readFile(join(bundle, String(size))))) ?? [];
  const at = entries[Number(size) - 1]?.at ?? "";
  for (const { kind, body } of tail) {
    const prev = leafHash(bytes.at(-1) ?? new Uint8Array());
    const entry = { at, body, index: BigInt(bytes.length), kind, log, prev } as Entry;
    bytes.push(encodeEntry(entry));
  }
  await writeFile(join(bundle, String(bytes.length)), encodeBundle(bytes));
  return bytes.map((entry) => leafHash(entry));
}

/** As a sealer does it before it signs. */
async function claimed(leaves: readonly Uint8Array[]): Promise<void> {
  const tile = join(root, log, "tile/0/000.p", String(leaves.length));
  await mkdir(dirname(tile), { recursive: true });
  await writeFile(tile, Buffer.concat(leaves));
  const text = `${leaves.length}\n${encodeBase64(naiveRoot([...leaves]))}\n`;
  await writeFile(join(root, log, "claim", String(size)), text);
}

const usage = (): Body<"usage"> => {
  const found = entries.find(({ kind }) => kind === "usage");
  if (found?.kind !== "usage") throw new Error("no usage");
  return found.body;
};

/** A usage of a job that nobody has reported, under a signature of this seed's key. */
const invented = (seed: number, change: object = {}): Forged => ({
  kind: "usage",
  body: {
    ...usage(),
    jws: reported(seed, log, { counter: "99999", job: { id: "424242" } }),
    ...change,
  },
});

/** Another's signature under the text. */
function resigned(): Forged {
  const [header, payload] = String((invented(1).body as Body<"usage">).jws).split(".");
  const [, , signature] = usage().jws.split(".");
  return invented(1, { jws: `${header}.${payload}.${signature}` });
}

const FORGERIES: [string, () => Forged][] = [
  ["a report that nobody signed", resigned],
  ["a report by a key that is not enrolled", () => invented(77)],
  ["a signed report with another charge", () => invented(1, { compute_ms: "1.000000" })],
  ["a report that stands already", () => ({ kind: "usage", body: usage() })],
  [
    "a conflict that is none",
    () => ({ kind: "conflict", body: { jws: usage().jws, stands: "0" } }),
  ],
  [
    "a hold that no rule asks for",
    () => ({ kind: "hold", body: { code: "future", jws: usage().jws } }),
  ],
  ["an attestation that nobody signed", () => ({ kind: "attestation", body: { jws: "a.b.c" } })],
  ["a key that nobody enrolled", () => ({ kind: "key_rotated", body: { jws: usage().jws } })],
  [
    "a key of the log",
    () => ({
      kind: "log_key",
      body: {
        ...{ approval: "", by: "p_thief", purpose: "checkpoint", state: "added" },
        ...{ salt: encodeBase64(new Uint8Array(16)), vkey: "thief+00000000+AAAA" },
      },
    }),
  ],
  [
    "that anybody may read the log",
    () => ({
      kind: "visibility",
      body: { approval: "", by: "p_thief", public: true, salt: encodeBase64(new Uint8Array(16)) },
    }),
  ],
];

describe("what proves nothing is set aside, and what was genuine before it is kept", () => {
  test.each(FORGERIES)("%s", async (_, forged) => {
    const genuine = entries.slice(Number(size), Number(size) + 2);
    expect(genuine.map(({ kind }) => kind)).toEqual(["usage", "usage"]);
    await archive([...genuine, forged(), ...entries.slice(Number(size) + 2)]);
    expect(await restore(copy, root, log)).toMatchObject({
      after: size + 2n,
      unsigned: 2n,
      aside: 1,
    });
    await expectProven(copy);
    const sealer = sealerOn(copy.writer, root);
    expect(await seal({ ...sealer, log })).toMatchObject({ size: size + 2n });
  });

  test("all that append wrote is taken", async () => {
    await archive(entries.slice(Number(size)));
    expect(await restore(copy, root, log)).toMatchObject({
      after: BigInt(entries.length),
      aside: 0,
    });
    await expectProven(copy);
  });
});

test.each(FORGERIES)(
  "a claim on a tree with it is refused, and nothing of it is taken: %s",
  async (_, forged) => {
    await claimed(await archive([...entries.slice(Number(size)), forged()]));
    const before = await archived(root);
    await expect(restore(copy, root, log)).rejects.toMatchObject({ code: "claim-unproven" });
    expect(await archived(root)).toEqual(before);
    const [row] = await copy.reader`select size from heads where log = ${log}`;
    expect(row?.["size"] ?? 0n).toBeLessThanOrEqual(size);
  },
);
