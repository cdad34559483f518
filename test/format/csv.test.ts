import { parse } from "csv-parse/sync";
import { stringify } from "csv-stringify/sync";
import fc from "fast-check";
import { expect, test } from "vitest";
import { crlf, csv, exportedCell, importedCell, writeCsv } from "../../src/format/csv.ts";
import { bytesOf, hostile, pagesFrom, textColumns } from "./sheet.ts";

const read = (text: string | Buffer): string[][] =>
  parse(text, { record_delimiter: "\r\n" }).map((line) => line.map(importedCell));

const cell = fc.oneof(fc.constantFrom("", "-1.5"), hostile);
const lines = fc
  .integer({ min: 1, max: 4 })
  .chain((width) => fc.array(fc.array(cell, { minLength: width, maxLength: width })));

test("any cells come back as they were, by another reader of RFC 4180 and one apostrophe", () => {
  fc.assert(
    fc.property(lines, (written) => {
      expect(read(csv(written))).toEqual(written);
    }),
  );
});

test("T54: no exported cell begins like a formula, unless it is a decimal number", () => {
  fc.assert(
    fc.property(cell, (given) => {
      const exported = exportedCell(given);
      expect(
        /^[=+\-@＝＋－＠\t\n\r]/.test(exported) && !/^-[0-9]+(\.[0-9]+)?$/.test(exported),
      ).toBe(false);
    }),
  );
});

test("lines end in CRLF, and only what needs quotes has them", () => {
  expect(
    csv([
      ["id", 'a"b'],
      ["-1.5", "=1"],
      ["x,y", "line\nbreak"],
    ]),
  ).toBe('id,"a""b"\r\n-1.5,\'=1\r\n"x,y","line\nbreak"\r\n');
});

test("a sheet is its columns' names and its rows, an empty cell where there is nothing", async () => {
  await fc.assert(
    fc.asyncProperty(lines, async (written) => {
      const columns = textColumns(written[0]?.length ?? 1);
      const rows = written.map((line) => line.map((text) => (text === "" ? null : text)));
      const file = await bytesOf(writeCsv(columns, pagesFrom(rows)));
      expect(read(file)).toEqual([columns.map(({ name }) => name), ...written]);
    }),
  );
});

test("lines that end in LF are ended in CRLF, and no cell is changed by that", () => {
  const unix = { record_delimiter: "unix", quoted_match: /[\r\n]/ };
  fc.assert(
    fc.property(lines, (written) => {
      const plain = stringify(
        written.map((line) => line.map(exportedCell)),
        unix,
      );
      expect(crlf(Buffer.from(plain)).toString("utf8")).toBe(csv(written));
    }),
  );
});
