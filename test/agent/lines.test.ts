import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { type RawLine, readLines } from "../../src/agent/lines.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-lines-"));
const path = join(folder, "file");

afterAll(() => {
  rmSync(folder, { recursive: true });
});

function read(content: string, bounds: { from: number; to: number; bytesMax: number }): RawLine[] {
  writeFileSync(path, content);
  const fd = openSync(path, "r");
  try {
    return [...readLines(fd, bounds)];
  } finally {
    closeSync(fd);
  }
}

test("lines put together again are the file, with the place of each", () => {
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[ab]{0,5}$/)), fc.boolean(), (texts, ended) => {
      const content = texts.join("\n") + (ended ? "\n" : "");
      const lines = read(content, { from: 0, to: content.length, bytesMax: 100 });
      let at = 0;
      for (const line of lines) {
        expect(line.start).toBe(at);
        const text = Buffer.from(line.bytes ?? []).toString();
        expect(content.slice(at, line.end)).toBe(text + (line.complete ? "\n" : ""));
        at = line.end;
      }
      expect(at).toBe(content.length);
      expect(lines.slice(0, -1).every(({ complete }) => complete)).toBe(true);
    }),
  );
});

test("a line longer than allowed is named, not kept, and the next one is read", () => {
  const content = `${"x".repeat(3_000_000)}\nshort\n`;
  const lines = read(content, { from: 0, to: content.length, bytesMax: 1000 });
  expect(lines.map(({ bytes, end }) => [bytes?.length, end])).toEqual([
    [undefined, 3_000_001],
    [5, 3_000_007],
  ]);
});

test("what is beyond the bounds is not looked at", () => {
  const lines = read("one\ntwo\nthree\n", { from: 4, to: 10, bytesMax: 100 });
  expect(lines.map(({ start, end, complete }) => [start, end, complete])).toEqual([
    [4, 8, true],
    [8, 10, false],
  ]);
});
