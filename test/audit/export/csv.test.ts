import { parse } from "csv-parse/sync";
import fc from "fast-check";
import { expect, test } from "vitest";
import { csvLine, readCell } from "../../../audit/export/csv.ts";
import { csv } from "../../../src/format/csv.ts";
import { HOSTILE, hostile } from "../../format/sheet.ts";

test("the auditor writes a line as the service does, and reads each of its cells as it was", () => {
  const lines = fc.array(hostile, { minLength: 1, maxLength: 5 });
  fc.assert(
    fc.property(lines, (cells) => {
      const line = csvLine(cells);
      expect(line).toBe(csv([cells]));
      const [read = []] = parse(line, { record_delimiter: "\r\n" });
      expect(read.map(readCell)).toEqual(cells);
    }),
    { examples: HOSTILE.map((cell): [string[]] => [[cell]]) },
  );
});
