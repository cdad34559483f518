import fc from "fast-check";
import { expect, test } from "vitest";
import { writeNdjson } from "../../src/format/ndjson.ts";
import { bytesOf, hostile, pagesFrom, textColumns } from "./sheet.ts";

test("each row is an object of strings and nulls, its members in the order of the columns", async () => {
  const columns = textColumns(3);
  const cells = fc.option(hostile);
  const rows = fc.array(fc.tuple(cells, cells, cells));
  await fc.assert(
    fc.asyncProperty(rows, async (written) => {
      const text = (await bytesOf(writeNdjson(columns, pagesFrom(written)))).toString("utf8");
      const lines = text.split("\n");
      expect(lines.pop()).toBe("");
      const read = lines.map((line) => Object.entries(JSON.parse(line)));
      expect(read).toEqual(written.map((row) => row.map((cell, i) => [`c${i}`, cell])));
    }),
  );
});
