import fc from "fast-check";
import { expect, test } from "vitest";
import { CannotLook } from "../../audit/finding.ts";
import { exitOf, printResult, resultJson } from "../../audit/print.ts";
import { encodeBundle } from "../../src/core/bundle.ts";
import { bundlePath } from "../../src/core/tile.ts";
import { auditFiles, type Files, filesOf } from "./archive.ts";
import { honestLog, longLog, smallLog } from "./honest.ts";
import { OTHER_LOG_ID } from "./log.ts";

const SMALL = filesOf(honestLog().log, [3, honestLog().log.size]);

/** An audit of whatever there is: it may find or refuse, and nothing else. */
async function outcome(files: Files): Promise<0 | 1 | 2> {
  try {
    const result = await auditFiles(files);
    expect(printResult(result)).not.toBe("");
    expect(JSON.stringify(resultJson(result))).not.toBe("");
    return exitOf(result);
  } catch (error) {
    expect(error).toBeInstanceOf(CannotLook);
    return 2;
  }
}

test("random bytes in any file never crash an audit, and never pass", async () => {
  const paths = [...SMALL.keys()];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.uint8Array({ maxLength: 600 }),
      async (path, bytes) => {
        expect(await outcome(new Map(SMALL).set(path, bytes))).not.toBe(0);
      },
    ),
    { numRuns: 150 },
  );
});

test("bytes spliced into any file never crash an audit, and never pass", async () => {
  const paths = [...SMALL.keys()];
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.nat(),
      fc.nat(3),
      fc.uint8Array({ minLength: 1, maxLength: 4 }),
      async (path, where, drop, bytes) => {
        const honest = SMALL.get(path) ?? new Uint8Array();
        const at = where % (honest.length + 1);
        const spliced = Buffer.concat([honest.subarray(0, at), bytes, honest.subarray(at + drop)]);
        fc.pre(!spliced.equals(honest));
        expect(await outcome(new Map(SMALL).set(path, new Uint8Array(spliced)))).not.toBe(0);
      },
    ),
    { numRuns: 200 },
  );
});

test("files of any name beside a log's own are passed over or found, and never crash", async () => {
  const name = fc.oneof(
    fc.string(),
    fc.stringMatching(/^checkpoint\/[0-9]{1,20}$/),
    fc.stringMatching(/^tile\/(entries|[0-9]{1,3})\/(x[0-9]{3}\/){0,3}[0-9]{3}(\.p\/[0-9]{1,3})?$/),
  );
  await fc.assert(
    fc.asyncProperty(name, fc.uint8Array({ maxLength: 100 }), async (path, bytes) => {
      fc.pre(!SMALL.has(path));
      expect([0, 1]).toContain(await outcome(new Map(SMALL).set(path, bytes)));
    }),
    { numRuns: 150 },
  );
});

/** What one hand can do to a bundle of entries, and the index that must be named for it. */
const HANDS: Record<string, (entries: Uint8Array[], at: number) => Uint8Array> = {
  "a byte changed": (entries, at) => {
    const bundle = encodeBundle(entries);
    const start = encodeBundle(entries.slice(0, at)).length;
    // Not of its length, which would take the rest of the bundle and fill the list of findings.
    const where = start + 2 + ((at * 7_919) % (entries[at]?.length ?? 1));
    bundle[where] = (bundle[where] ?? 0) ^ (1 << (at % 8));
    return bundle;
  },
  "an entry taken out": (entries, at) => encodeBundle(entries.toSpliced(at, 1)),
  "two entries swapped": (entries, at) => {
    const [a, b] = entries.slice(at, at + 2);
    return encodeBundle(a && b ? entries.toSpliced(at, 2, b, a) : entries.toSpliced(at, 1));
  },
  "another log's entry spliced in": (entries, at) => encodeBundle(entries.with(at, FOREIGN)),
  // Last, as each entry that it loses is one of the findings that are listed.
  "the rest cut off": (entries, at) => {
    const start = encodeBundle(entries.slice(0, at)).length;
    return encodeBundle(entries).subarray(0, start + 1 + (at % 50));
  },
};
const FOREIGN = smallLog(OTHER_LOG_ID).entries[1] ?? new Uint8Array();

test("among 100,000 entries whatever is done to a bundle is named with its entry", async () => {
  const log = longLog(100_000);
  const files = filesOf(log);
  const hands = Object.entries(HANDS);
  // Each has bundles to itself, so that one audit finds what all of them did.
  const apart = Math.ceil(log.size / 256 / hands.length) * 256;
  const done = hands.map(([hand, change], part) => {
    const max = Math.min((part + 1) * apart, log.size) - 1;
    const [index = 0] = fc.sample(fc.integer({ min: part * apart, max }), 1);
    const first = index - (index % 256);
    const entries = log.entries.slice(first, first + 256);
    files.set(bundlePath(BigInt(first / 256), entries.length), change(entries, index - first));
    return { hand, index: BigInt(index), part: BigInt(part) };
  });
  const { findings } = await auditFiles(files);
  const indexes = findings.listed.flatMap(({ index }) => index ?? []);
  for (const { hand, index, part } of done) {
    const found = indexes.find((at) => at / BigInt(apart) === part);
    expect(found, `${hand}, entry ${index}`).toBe(index);
  }
  expect(findings.first?.index).toBe(done[0]?.index);
});
