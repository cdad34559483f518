/** What commands write to standard output: one JSON document, or lines and tables for people. */

export interface Printing {
  json?: true;
}

export function print({ json }: Printing, document: object, lines: readonly string[]): void {
  const text = json ? JSON.stringify(document, undefined, 2) : lines.map(printable).join("\n");
  process.stdout.write(`${text}\n`);
}

/** Columns as wide as their widest cell; those of numbers stand to the right. */
export function table(header: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [header, ...rows];
  const widths = header.map((_, i) => Math.max(...all.map((row) => (row[i] ?? "").length)));
  const numeric = header.map((_, i) => rows.every((row) => NUMBER.test(row[i] ?? "")));
  return all.map((row) =>
    widths
      .map((width, i) => {
        const cell = row[i] ?? "";
        return numeric[i] ? cell.padStart(width) : cell.padEnd(width);
      })
      .join("  ")
      .trimEnd(),
  );
}

const NUMBER = /^-?[0-9]*(?:\.[0-9]+)?$/;

/** What comes from elsewhere must not steer a terminal, nor begin a line of its own. */
export function printable(line: string): string {
  return line.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, " ");
}
