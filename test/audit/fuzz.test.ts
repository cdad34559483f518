import fc from "fast-check";
import { expect, test } from "vitest";
import { CannotLook } from "../../audit/finding.ts";
import { exitOf, printResult, resultJson } from "../../audit/print.ts";
import { auditFiles, type Files, filesOf } from "./archive.ts";
import { honestLog, longLog } from "./honest.ts";

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
}, 60_000);

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
}, 60_000);

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
}, 60_000);

test("among 5,000 entries a bit changed anywhere is named with its entry", async () => {
  const log = longLog(5_000);
  const files = filesOf(log);
  await fc.assert(
    fc.asyncProperty(fc.nat(4_999), fc.nat(), async (index, where) => {
      const first = index - (index % 256);
      const path = [...files.keys()].find((name) =>
        name.startsWith(`tile/entries/0${String(first / 256).padStart(2, "0")}`),
      );
      const bundle = (files.get(path ?? "") ?? new Uint8Array()).slice();
      let start = 0;
      for (const entry of log.entries.slice(first, index)) start += 2 + entry.length;
      const width = 2 + (log.entries[index]?.length ?? 0);
      const at = start + (where % width);
      bundle[at] = (bundle[at] ?? 0) ^ (1 << (where % 8));
      const { findings } = await auditFiles(new Map(files).set(path ?? "", bundle));
      expect(findings.first?.index).toBe(BigInt(index));
    }),
    { numRuns: 12 },
  );
}, 120_000);
