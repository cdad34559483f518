import { afterAll, beforeAll, expect, test } from "vitest";
import { pagesOf } from "../../src/store/pages.ts";
import { transact } from "../../src/store/transact.ts";
import { closeHouse, type House, openHouse } from "../flow/door.ts";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => closeHouse(house));

test("rows come in pages and in their order, and between two pages the connection answers others", async () => {
  const pages = await transact(house.database.reader, async (tx) => {
    const seen: number[][] = [];
    const query = tx`select n from generate_series(1, ${5}::int) as n order by n`;
    for await (const page of pagesOf<{ n: number }>(tx, query, 2)) {
      const [other] = await tx<{ n: number }[]>`select ${7}::int as n`;
      seen.push([...page.map(({ n }) => n), other?.n ?? 0]);
      for await (const inner of pagesOf<{ n: number }>(tx, tx`select 1 as n`, 2)) {
        expect(inner).toEqual([{ n: 1 }]);
      }
    }
    return seen;
  });
  expect(pages).toEqual([
    [1, 2, 7],
    [3, 4, 7],
    [5, 7],
  ]);
});
