/** Cells that do harm, and sheets of them. */
import fc from "fast-check";
import type { Column, Page, Row } from "../../src/core/export/tables.ts";

/** T54, and whatever else a name has been seen to hold. */
export const HOSTILE = [
  "=1+1",
  '=HYPERLINK("https://example.test","x")',
  "+49 30",
  "-1",
  "-1+1",
  "@SUM(A1)",
  "＝1+1",
  "＋49",
  "－1",
  "＠SUM(A1)",
  "Ａ",
  "＞1",
  "\tx",
  "\rx",
  "\n=1",
  "'",
  "''=1",
  '"',
  'a"b""c',
  "a,b;c",
  "a\nb",
  "a\r\nb\r",
  "\n",
  " x ",
  "\\.",
  "NULL",
  "null",
  "\u{1F600}\u{1F468}\u200D\u{1F469}",
  "שלום, עולם",
  "مرحبا",
  "e\u0301\u0301 A\u030A",
  "\u202Eabc",
  "\uFEFFx",
  "流水线",
] as const;

export const hostile: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ minLength: 1 }),
  fc.string({ unit: "grapheme", minLength: 1 }),
  fc.string({ unit: fc.constantFrom('"', "\n", "\r", ",", "'", "=", "a"), minLength: 1 }),
);

/** Rows, so many a page. */
export async function* pagesFrom(rows: readonly Row[], size = 3): AsyncGenerator<Page> {
  for (let at = 0; at < rows.length; at += size) yield rows.slice(at, at + size);
}

export function textColumns(width: number): readonly Column[] {
  return Array.from({ length: width }, (_, i) => ({
    name: `c${i}`,
    type: "text" as const,
    nullable: true as const,
  }));
}

export async function bytesOf(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}
