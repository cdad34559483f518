import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BATCH_LETTERS_MAX, parseStrict } from "../../src/http/body.ts";
import { Gathered } from "../../src/http/gathered.ts";
import { membersNamed } from "../../src/http/json.ts";
import { ask, type House, openHouse } from "./house.ts";

let house: House;

beforeAll(async () => {
  house = await openHouse();
});

afterAll(() => house.close());

const FULL = 4 * 1024 * 1024;
const MB = 1_000_000;

/** `unit` again and again between two ends, 4 MiB in all. */
function filled(unit: string, before: string, after: string): string {
  const times = Math.floor((FULL - before.length - after.length) / unit.length);
  return before + unit.repeat(times) + after;
}

const isCheap = (text: string, letters: number) => membersNamed(text, letters) !== undefined;

const HOSTILE: Record<string, string> = {
  "open brackets": filled("[", "", ""),
  "nested lists": "[".repeat(FULL / 2) + "]".repeat(FULL / 2),
  "nested objects": `${'{"a":'.repeat(600_000)}1${"}".repeat(600_000)}`,
  "empty objects": filled("{},", '{"heartbeats":[', "{}]}"),
  "empty strings": filled('"",', '{"reports":[', '""]}'),
  "small members": `{${Array.from({ length: 350_000 }, (_, i) => `"${i.toString(36)}":0`)}}`,
  "escaped quotes": filled('\\"', '{"heartbeats":["', '"]}'),
  "escaped letters": filled("\\u1234", '{"reports":["', '"]}'),
  "escapes among names": filled(`${"x".repeat(70)}\\n`, '{"', '":1}'),
  digits: filled("1", '{"heartbeats":', "}"),
  spaces: filled(" ", "{", "}"),
};

test.each(Object.entries(HOSTILE))(
  "4 MiB of %s are refused without being parsed, on either route that anybody may ask",
  async (_, text) => {
    const asked = { jose: text, headers: { "content-type": "application/json" } };
    for (const route of ["POST /v1/heartbeats", "POST /v1/reports"] as const) {
      const { status, json } = await ask(house, route, asked);
      expect([status, json["code"]]).toEqual([400, "invalid-request"]);
    }
    expect(isCheap(text, BATCH_LETTERS_MAX)).toBe(false);
    const before = process.memoryUsage().heapUsed;
    const start = process.cpuUsage();
    expect(() => parseStrict(text, BATCH_LETTERS_MAX)).toThrow();
    const { system, user } = process.cpuUsage(start);
    // Parsed it would be seconds and hundreds of megabytes.
    expect((system + user) / 1_000).toBeLessThan(500);
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(50 * MB);
  },
);

test("a full batch is cheap, indented too, and with whatever its strings hold", () => {
  const jws = "x".repeat(4_096);
  const batch = { reports: Array.from({ length: 500 }, () => `[{${jws}`) };
  for (const text of [JSON.stringify(batch), JSON.stringify(batch, null, 8)]) {
    expect(parseStrict(text, BATCH_LETTERS_MAX)).toEqual(batch);
  }
});

/** What counts, by a pattern. */
function lettersOf(text: string): number {
  const escapes = text.match(/\\(?:u[0-9a-f]{4}|.)/g) ?? [];
  return text.replace(/"(?:[^"\\]|\\.)*"/g, "s").length + escapes.length;
}

test("JSON is cheap as long as its letters outside of strings, its strings and its escapes are few", () => {
  const value = fc.jsonValue({ maxDepth: 4, noUnicodeString: false });
  fc.assert(
    fc.property(value, (any) => {
      const text = JSON.stringify(any);
      const letters = lettersOf(text);
      expect([isCheap(text, letters), isCheap(text, letters - 1)]).toEqual([true, false]);
    }),
    { numRuns: 1_000 },
  );
});

test("eight brackets may be open at once, and nine may not", () => {
  const nested = (depth: number): string => "[".repeat(depth) + "]".repeat(depth);
  expect([8, 9].map((depth) => isCheap(nested(depth), 100))).toEqual([true, false]);
  expect(isCheap(`[${nested(7)},${nested(7)},"${"[".repeat(9)}"]`, 100)).toBe(true);
});

test("what comes in pieces, of a byte each too, is kept in one that is at most twice as long", () => {
  const pieces = fc.array(fc.uint8Array({ minLength: 1, maxLength: 40 }), { maxLength: 60 });
  fc.assert(
    fc.property(pieces, (chunks) => {
      const gathered = new Gathered();
      for (const chunk of chunks) gathered.add(Buffer.from(chunk));
      const bytes = gathered.bytes();
      expect(bytes.equals(Buffer.concat(chunks))).toBe(true);
      // Small ones lie in Node's pool.
      expect(bytes.buffer.byteLength).toBeLessThanOrEqual(
        Math.max(Buffer.poolSize, 2 * bytes.length),
      );
    }),
  );
});
