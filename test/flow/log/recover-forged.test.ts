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
  await underTwo();
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

/** Two persons decide, beside a system that changes limits by itself. */
async function underTwo(): Promise<void> {
  const issuer = "https://id.example";
  const approver = {
    claim: "roles",
    issuer,
    namespaces: "*",
    role: "approver",
    value: "a",
  } as const;
  await door.appender.control(log, "role_mapping", () => ({ ...WORD, grants: [approver] }));
  await door.appender.control(log, "mode", ({ billingFrom: billing_from }) => {
    return { ...WORD, billing_from, control: "dual", sources: ["plan"] };
  });
}

type Forged = { kind: Kind; body: object };

/** As anybody writes it who signs nothing. */
const WORD = { approval: "", by: "p_thief", salt: encodeBase64(new Uint8Array(16)) };
const OF_PLAN = { ...WORD, source: "plan", source_version: "1" };
const HASH = encodeBase64(new Uint8Array(32));
const CASE = { reason: "x", ticket: "y" };
const LINE = {
  ...{ amount: "-999999999.000000", entry: "", namespace_id: "7", project_id: "", reverses: "" },
  usage_month: "2026-11-01",
};

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

function keyOf(jws: string): string {
  const header: unknown = JSON.parse(Buffer.from(jws.split(".")[0] ?? "", "base64url").toString());
  return (header as { kid: string }).kid;
}

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
      body: { ...WORD, purpose: "checkpoint", state: "added", vkey: "thief+00000000+AAAA" },
    }),
  ],
];

/** Whatever else anybody may say, and no key signs. */
const WORDS: [string, () => Forged][] = [
  [
    "that anybody may read the log",
    () => ({ kind: "visibility", body: { ...WORD, public: true } }),
  ],
  [
    "a limit in the name of a system",
    () => ({
      kind: "quota",
      body: {
        ...{ ...OF_PLAN, beyond: "stop", cap: "", effective_from: "2027-01-01T00:00:00.000Z" },
        ...{ grace_minutes: "0", monthly_minutes: "99999999", namespace_id: "7" },
      },
    }),
  ],
  [
    "a pack in the name of a system",
    () => ({
      kind: "pack",
      body: {
        ...{ ...OF_PLAN, expires_in: "2027-10-01", minutes: "1000000", namespace_id: "7" },
        ...{ pack_id: "x", purchased_in: "2026-11-01" },
      },
    }),
  ],
  [
    "an account in the name of a system",
    () => ({
      kind: "account",
      body: {
        ...{ ...OF_PLAN, account_id: "thief", effective_from: "2026-11-01T00:00:00.000Z" },
        ...{ namespace_id: "7", subscription_id: "" },
      },
    }),
  ],
  [
    "a line that names a credit run",
    () => ({
      kind: "adjustment",
      body: {
        ...{ ...WORD, ...CASE, approval: "1", billing_month: "2026-11-01", credit_run: "1" },
        ...{ first_line: "0", lines: [LINE] },
      },
    }),
  ],
  [
    "a month that is cut off",
    () => ({ kind: "month_closing", body: { ...WORD, month: "2026-10-01" } }),
  ],
  [
    "the end of a key",
    () => ({
      kind: "key_revoked",
      body: {
        ...{ by: "p_thief", instant: "2026-11-20T12:00:00.000Z", kid: keyOf(usage().jws) },
        ...{ last_trusted_counter: "0", reason: "x", salt: WORD.salt },
      },
    }),
  ],
  [
    "a runner that somebody enrols",
    () => {
      const found = entries.find(({ kind }) => kind === "enrolment");
      return { kind: "enrolment", body: { ...found?.body, token_sha256: HASH } };
    },
  ],
  [
    "what a platform is said to have run",
    () => ({
      kind: "coverage",
      body: {
        ...{ by: "p_thief", from: "2026-10-01T00:00:00.000Z", jobs: "0", jobs_sha256: HASH },
        ...{ runner_id: "7", salt: WORD.salt, source: "gitlab", to: "2026-11-01T00:00:00.000Z" },
      },
    }),
  ],
];

describe("what proves nothing is set aside, and what was genuine before it is kept", () => {
  test.each([...FORGERIES, ...WORDS])("%s", async (_, forged) => {
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
