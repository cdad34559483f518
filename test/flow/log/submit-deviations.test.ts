import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { textOf } from "../../../src/flow/log/cosigned.ts";
import { submit } from "../../../src/flow/log/submit.ts";
import { cosignaturePath } from "../../../src/store/archive.ts";
import { readCosigned } from "../../../src/store/cosignatures.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { TestWitness, type WireAnswer } from "../witness.ts";
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

const asked = (witness: TestWitness) => witness.asked.map(({ old }) => old);

const SIZE = { "content-type": "text/x.tlog.size" };

const answers: [string, string, boolean, (honest: WireAnswer) => WireAnswer][] = [
  ["409 without a size", "witness-conflict", false, () => ({ status: 409, body: "" })],
  [
    "409 with a size of another type",
    "witness-conflict",
    false,
    () => ({ status: 409, body: "0\n" }),
  ],
  ["409 with no number", "malformed", false, () => ({ status: 409, body: "07\n", headers: SIZE })],
  [
    "409 with a size that no log has",
    "malformed",
    false,
    () => ({ status: 409, body: `${2n ** 63n}\n`, headers: SIZE }),
  ],
  ["400", "400", false, () => ({ status: 400, body: "" })],
  ["403", "403", false, () => ({ status: 403, body: "" })],
  ["404", "404", false, () => ({ status: 404, body: "" })],
  ["422", "witness-conflict", false, () => ({ status: 422, body: "" })],
  ["204", "204", false, () => ({ status: 204, body: "" })],
  ["429", "429", true, () => ({ status: 429, body: "", headers: { "retry-after": "7" } })],
  ["503", "503", true, () => ({ status: 503, body: "", headers: { "retry-after": "7" } })],
  ["nothing", "malformed", false, () => ({ status: 200, body: "" })],
  ["no line", "malformed", false, () => ({ status: 200, body: "cosigned\n" })],
  [
    "a cut line",
    "malformed",
    false,
    ({ body }) => ({ status: 200, body: String(body).slice(0, -1) }),
  ],
  ["its line twice", "malformed", false, ({ body }) => ({ status: 200, body: `${body}${body}` })],
  [
    "bytes that are no text",
    "malformed",
    false,
    () => ({ status: 200, body: Buffer.from([0xff]) }),
  ],
  [
    "a longer answer",
    "too-long",
    false,
    ({ body }) => ({ status: 200, body: String(body).repeat(200) }),
  ],
];

test.each(answers)("a witness that answers %s has cosigned nothing: %s", async (...row) => {
  const [, reason, away, deviate] = row;
  const { log, submitting } = await newLog(3);
  const witness = await openWitness();
  witness.deviate = deviate;
  await expect(submit(submitting, witness, log)).rejects.toMatchObject({
    reason,
    away,
    retryAfterMs: away ? 7_000 : 0,
  });
  expect(witness.asked.length).toBe(1);
  expect(await cosignedBy(db.reader, log, witness)).toEqual([]);
  const file = cosignaturePath(log, 3n, witness.vkey.id);
  expect(await submitting.archive.get(file)).toBeUndefined();
});

test("a line by another key, over another text, or of a time that cannot be, is no cosignature", async () => {
  const { log, submitting } = await newLog(3);
  const other = await newLog(4);
  const [witness, stranger] = [await openWitness(), new TestWitness("eve", 66)];
  const text = textOf((await readCosigned(db.reader, log))?.note ?? "");
  const otherText = textOf((await readCosigned(db.reader, other.log))?.note ?? "");
  const soon = BigInt(Math.floor(submitting.now / 1_000)) + 301n;
  const cases: [string, string][] = [
    [stranger.cosign(text), "unknown-key"],
    [witness.cosign(otherText), "bad-signature"],
    [witness.cosign(text, soon), "future"],
    [witness.cosign(text, 0n), "bad-signature"],
    // With an empty line it speaks for a text that goes on where ours ends.
    [`x\n\n${witness.cosign(`${text}\nx\n`)}`, "malformed"],
  ];
  for (const [body, reason] of cases) {
    witness.deviate = () => ({ status: 200, body });
    await expect(submit(submitting, witness, log), reason).rejects.toMatchObject({ reason });
  }
  expect(await cosignedBy(db.reader, log, witness)).toEqual([]);
  witness.deviate = () => ({ status: 200, body: witness.cosign(text, soon - 1n) });
  expect(await submit(submitting, witness, log)).toBe("cosigned");
});

test("lines of other keys beside its own are let pass, and are not stored", async () => {
  const { log, submitting } = await newLog(3);
  const [witness, stranger] = [await openWitness(), new TestWitness("eve", 66)];
  const elsewhere = stranger.cosign("another text\n");
  witness.deviate = (honest) => ({ ...honest, body: `${elsewhere}${honest.body}` });
  expect(await submit(submitting, witness, log)).toBe("cosigned");
  const stored = await readCosigned(db.reader, log, 3n);
  expect(stored?.cosignatures.map(({ name }) => name)).toEqual(["ada.test"]);
});

test("a witness that points elsewhere is not followed", async () => {
  const { log, submitting } = await newLog(3);
  const [witness, elsewhere] = [await openWitness(), await openWitness("bob", 62)];
  for (const status of [301, 307]) {
    const location = `${elsewhere.url}/add-checkpoint`;
    witness.deviate = () => ({ status, body: "", headers: { location } });
    const refusal = { reason: "redirect", away: false };
    await expect(submit(submitting, witness, log)).rejects.toMatchObject(refusal);
  }
  expect(elsewhere.asked).toEqual([]);
});

test("a witness that says nothing, or is not there, is away", async () => {
  const { log, submitting } = await newLog(3);
  const witness = await openWitness();
  witness.deviate = () => undefined;
  const silent = { reason: "timeout", away: true };
  const hasty = { ...submitting, timeoutMs: 50 };
  await expect(submit(hasty, witness, log)).rejects.toMatchObject(silent);
  witness.close();
  const gone = { reason: "unreachable", away: true };
  await expect(submit(submitting, witness, log)).rejects.toMatchObject(gone);
});

test("a witness that goes on saying sizes is asked twice, and then left alone", async () => {
  const { log, submitting, growTo } = await newLog(3);
  await growTo(4);
  const witness = await openWitness();
  let size = 1;
  witness.deviate = () => ({ status: 409, body: `${size++}\n`, headers: SIZE });
  const refusal = { reason: "unsettled", away: false };
  await expect(submit(submitting, witness, log)).rejects.toMatchObject(refusal);
  expect(asked(witness)).toEqual([0n, 1n]);
});
