/** Every entry, one after the other: whoever has the file sees that none is missing. */
import { TABLES } from "../../core/export/tables.ts";
import { crlf, csvHeader } from "../../format/csv.ts";
import { copyEntries, entryFigures, entryPages } from "../../store/export-entries.ts";
import type { Source } from "./source.ts";

export const entries: Source = ({ tx, log, asOf, parameters }) => {
  const columns = TABLES.entries;
  const range = { log, from: BigInt(parameters.from ?? "0"), to: asOf };
  return {
    columns,
    pages: entryPages(tx, range),
    csv: {
      bytes: file(csvHeader(columns), copyEntries(tx, range)),
      figures: () => entryFigures(tx, range),
    },
  };
};

async function* file(
  header: Uint8Array,
  pieces: AsyncIterable<Buffer>,
): AsyncGenerator<Uint8Array> {
  yield header;
  for await (const lines of pieces) yield crlf(lines);
}
