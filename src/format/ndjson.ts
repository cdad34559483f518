/**
 * NDJSON: a JSON object a line, its members in the order of the columns, every value a string or null. A
 * number there is none: 64-bit integers and decimals pass what JSON's readers make of one (DESIGN §2).
 */
import type { Column, Page } from "../core/export/tables.ts";

export async function* writeNdjson(
  columns: readonly Column[],
  pages: AsyncIterable<Page>,
): AsyncGenerator<Uint8Array> {
  const names = columns.map(({ name }) => `${JSON.stringify(name)}:`);
  for await (const page of pages) {
    let lines = "";
    for (const row of page) {
      const members = names.map((name, at) => name + JSON.stringify(row[at] ?? null));
      lines += `{${members.join(",")}}\n`;
    }
    yield Buffer.from(lines);
  }
}
