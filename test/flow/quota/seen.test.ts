/** What a process remembers of its talk with live usage. */
import { expect, test } from "vitest";
import { Seen } from "../../../src/flow/quota/seen.ts";

const COPY = Symbol();
/** More than are kept. */
const COUNT = 50_000;
/** Always kept. */
const LAST = 10_000;

test("what was handed last is remembered, what was handed long ago is not, and logs are kept apart", () => {
  const seen = new Seen();
  const key = (i: number) => ({ log: i % 2 === 0 ? "even" : "odd", namespace: String(i) });
  for (let i = 0; i < COUNT; i += 1) seen.handed(key(i), { asOf: BigInt(i), copy: COPY });
  const told = Array.from({ length: COUNT }, (_, i) => seen.handedTo(key(i), { copy: COPY }));
  expect(told.slice(-LAST)).toEqual(
    Array.from({ length: LAST }, (_, i) => BigInt(COUNT - LAST + i)),
  );
  expect(told.filter((asOf) => asOf !== undefined).length).toBeLessThanOrEqual(2 * LAST);
  expect(
    seen.handedTo({ log: "odd", namespace: String(COUNT - 2) }, { copy: COPY }),
  ).toBeUndefined();
});

test("what was learnt by one copy of a log is nothing by another", () => {
  const seen = new Seen();
  const key = { log: "1", namespace: "2" };
  seen.handed(key, { asOf: 7n, copy: COPY });
  seen.absent("1", "3", { held: { asOf: 7n, copy: COPY }, at: 5 });
  expect(seen.handedTo(key, { copy: Symbol() })).toBeUndefined();
  expect(seen.absentAt("1", "3", { copy: Symbol() })).toBeUndefined();
  expect(seen.absentAt("1", "3", { copy: COPY })).toMatchObject({ asOf: 7n, at: 5 });
});
