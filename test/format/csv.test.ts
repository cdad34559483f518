import fc from "fast-check";
import { expect, test } from "vitest";
import { csv, exportedCell, importedCell } from "../../src/format/csv.ts";

/** RFC 4180, read character by character. */
function parse(text: string): string[][] {
  const lines: string[][] = [];
  let line: string[] = [];
  let at = 0;
  while (at < text.length) {
    let cell = "";
    if (text[at] === '"') {
      for (at += 1; text[at] !== '"' || text[at + 1] === '"'; at += text[at] === '"' ? 2 : 1) {
        cell += text[at];
      }
      at += 1;
    } else {
      while (at < text.length && text[at] !== "," && text[at] !== "\r") cell += text[at++];
    }
    line.push(cell);
    if (text[at] === ",") at += 1;
    else {
      expect(text.slice(at, at + 2)).toBe("\r\n");
      at += 2;
      lines.push(line);
      line = [];
    }
  }
  return lines;
}

const cell = fc.oneof(
  fc.string(),
  fc.string({ unit: "grapheme" }),
  fc.constantFrom(
    "",
    "'",
    "''=1",
    "=1+1",
    "-1.5",
    "-1+1",
    "@SUM(A1)",
    "\tx",
    "\rx",
    'a"b',
    "a\r\nb",
    "a,b",
  ),
);

test("any cells come back as they were, by RFC 4180 and one apostrophe", () => {
  const width = fc.integer({ min: 1, max: 4 });
  const lines = width.chain((columns) =>
    fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), { minLength: 1 }),
  );
  fc.assert(
    fc.property(lines, (written) => {
      const read = parse(csv(written)).map((line) => line.map(importedCell));
      expect(read).toEqual(written);
    }),
  );
});

test("T54: no exported cell begins like a formula, unless it is a decimal number", () => {
  fc.assert(
    fc.property(cell, (given) => {
      const exported = exportedCell(given);
      expect(/^[=+\-@\t\r]/.test(exported) && !/^-[0-9]+(\.[0-9]+)?$/.test(exported)).toBe(false);
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
