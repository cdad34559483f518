import fc from "fast-check";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { submit } from "../../../src/flow/log/submit.ts";
import type { Archive } from "../../../src/store/archive.ts";
import { type FreshDatabase, freshDatabase } from "../../postgres.ts";
import { TestWitness, type WireAnswer } from "../witness.ts";
import { cosignedBy, expectGenuine, type SealedLog, sealedLog } from "../witnessed.ts";

let db: FreshDatabase;
beforeAll(async () => {
  db = await freshDatabase();
});
afterAll(() => db.drop());

/** What may come between a log and its witness. */
const MISHAPS = [
  "none",
  "refused",
  "answer lost",
  "answer garbled",
  "answer of before",
  "witness forgets",
  "killed before the file",
  "killed after the file",
  "killed before the row",
  "asked twice at once",
] as const;
type Mishap = (typeof MISHAPS)[number];

const step = fc.record({
  grow: fc.integer({ min: 0, max: 3 }),
  mishap: fc.constantFrom(...MISHAPS),
});

test("whatever is lost, refused, garbled, killed or repeated: what is stored verifies, and all comes right", async () => {
  let number = 1_000;
  const witness = await new TestWitness("ada", 61).listen();
  onTestFinished(() => witness.close());
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async (steps) => {
      const sealed = await sealedLog(db.writer, ++number, [2]);
      let size = 2;
      for (const { grow, mishap } of steps) {
        size += grow;
        await sealed.growTo(size);
        await submitWith(mishap, sealed, witness);
        await expectGenuine(db.reader, sealed, witness);
      }
      witness.deviate = (honest) => honest;
      await submit(sealed.submitting, witness, sealed.log);
      const stored = await cosignedBy(db.reader, sealed.log, witness);
      expect(stored.at(-1)).toBe(BigInt(size));
      await expectGenuine(db.reader, sealed, witness);
    }),
    { numRuns: 30 },
  );
});

async function submitWith(
  mishap: Mishap,
  { log, submitting }: SealedLog,
  witness: TestWitness,
): Promise<void> {
  if (mishap === "witness forgets") witness.last.clear();
  witness.deviate = deviationOf(mishap, witness);
  const { archive, sql } = submitting;
  const given = { ...submitting, archive: dyingAt(mishap, archive), sql: dyingSql(mishap, sql) };
  const tries = mishap === "asked twice at once" ? 2 : 1;
  // A mishap may or may not meet a submission: whether it ends well is not what is asked here.
  await Promise.allSettled(Array.from({ length: tries }, () => submit(given, witness, log)));
}

function deviationOf(mishap: Mishap, witness: TestWitness): (honest: WireAnswer) => WireAnswer {
  const lost: WireAnswer = { status: 200, body: "" };
  const former = witness.cosign("chain.test/former\n1\nroot\n");
  if (mishap === "refused") return () => ({ status: 422, body: "" });
  if (mishap === "answer lost") return () => lost;
  if (mishap === "answer of before") return () => ({ ...lost, body: former });
  if (mishap !== "answer garbled") return (honest) => honest;
  return (honest) => ({ ...honest, body: String(honest.body).replace(/[AB]/, "C") });
}

function dyingAt(mishap: Mishap, archive: Archive): Archive {
  if (!mishap.endsWith("the file")) return archive;
  const create: Archive["create"] = async (path, bytes) => {
    if (mishap === "killed after the file") await archive.create(path, bytes);
    throw new Error("killed");
  };
  return { ...archive, create };
}

function dyingSql<Sql extends typeof db.writer>(mishap: Mishap, sql: Sql): Sql {
  if (mishap !== "killed before the row") return sql;
  return new Proxy(sql, {
    apply: (query, self, parts: [TemplateStringsArray]) => {
      if (parts[0].join("").includes("insert into cosignatures")) throw new Error("killed");
      return Reflect.apply(query, self, parts);
    },
  });
}
