import fc from "fast-check";
import { expect, test } from "vitest";
import { Lanes, type Work } from "../../../src/flow/log/lane.ts";

interface Turn {
  log: string;
  items: readonly number[];
}

function lanes(turns: Turn[], options: { logsMax?: number } = {}) {
  const memories: string[] = [];
  const made = new Lanes<number, { log: string }>({
    memory: (log) => {
      memories.push(log);
      return { log };
    },
    perform: async ({ log }, items) => {
      turns.push({ log, items });
      await new Promise(setImmediate);
    },
    sizeMax: 10,
    logsMax: options.logsMax ?? 10,
  });
  return { made, memories };
}

test("works keep their order, none is split or lost, and a turn is one large work, or many up to the size", async () => {
  const kind = fc.constantFrom("shared", "shared", "alone");
  const works = fc.array(fc.record({ kind, size: fc.integer({ min: 1, max: 14 }) }));
  await fc.assert(
    fc.asyncProperty(works, async (works) => {
      const turns: Turn[] = [];
      const { made } = lanes(turns);
      for (const [item, { kind, size }] of works.entries()) {
        const work: Work<number> =
          kind === "shared" ? { kind, size, item } : { kind: "alone", item };
        made.push("log", work);
      }
      await made.idle();
      expect(turns.flatMap(({ items }) => items)).toEqual(works.map((_, item) => item));
      for (const { items } of turns) {
        const size = items.reduce((sum, item) => sum + (works[item]?.size ?? 0), 0);
        const alone = items.some((item) => works[item]?.kind === "alone");
        expect(items.length === 1 || (!alone && size <= 10)).toBe(true);
      }
    }),
  );
});

test("one log never waits for another", async () => {
  const turns: Turn[] = [];
  const { made } = lanes(turns);
  for (const item of [1, 2]) {
    for (const log of ["a", "b"]) made.push(log, { kind: "alone", item });
  }
  await made.idle();
  expect(turns.map(({ log }) => log)).toEqual(["a", "b", "a", "b"]);
});

test("of more logs than are remembered, those used longest ago are forgotten", async () => {
  const { made, memories } = lanes([], { logsMax: 2 });
  for (const log of ["a", "b", "a", "c", "a", "b"]) {
    made.push(log, { kind: "alone", item: 0 });
    await made.idle();
  }
  expect(memories).toEqual(["a", "b", "c", "b"]);
});
