import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compactVerify, importJWK } from "jose";
import { afterAll, expect, test } from "vitest";
import { createKey } from "../../src/agent/key.ts";
import { reporter } from "../../src/agent/reporter.ts";
import { readLine } from "../../src/agent/usagelog.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { readCompact } from "../../src/core/jws.ts";
import { Report, TYP } from "../../src/core/report.ts";
import { usageLine } from "./records.ts";
import { LOG } from "./service.ts";

const folder = mkdtempSync(join(tmpdir(), "minutebook-reporter-"));
const key = createKey(folder);
const report = reporter(key, LOG);

afterAll(() => {
  rmSync(folder, { recursive: true });
});

function measured(line: string) {
  const read = readLine(new TextEncoder().encode(line));
  if (read.kind !== "record") throw new Error(`a line that is ${read.kind}`);
  return read.measurement;
}

test("a report is a strict JWS that jose verifies, with the canonical payload of the protocol", async () => {
  const measurement = measured(usageLine());
  const jws = report(measurement, 7n, Date.UTC(2026, 10, 29));
  const { payload, protectedHeader } = await compactVerify(
    jws,
    await importJWK({ ...key.publicKey }, "Ed25519"),
    { algorithms: ["Ed25519"] },
  );
  expect(protectedHeader).toEqual({ alg: "Ed25519", kid: key.kid, typ: TYP.report });
  expect(readCompact(jws)).toMatchObject({ kid: key.kid, typ: TYP.report });
  expect(Report.parse(parseCanonical(payload))).toEqual({
    ...measurement,
    counter: "7",
    issued_at: "2026-11-29T00:00:00.000Z",
    log: LOG,
  });
});

test("the longest record that is no malformed line still fits into a report", () => {
  const longest = '"'.repeat(255);
  const line = usageLine({
    uuid: longest,
    id: "9223372036854775807",
    duration: "9223372036854775.807",
    executor: longest,
    status: "a".repeat(64),
    reason: "a".repeat(64),
  })
    .replace("s_1818892f902b", JSON.stringify(longest).slice(1, -1))
    .replace(/"uuid":"a09f[^"]+"/, `"uuid":${JSON.stringify(longest)}`)
    .replaceAll(/"id":(3000000228|50010|1001)/g, '"id":9223372036854775807');
  const jws = report(measured(line), 2n ** 63n - 1n, Date.UTC(9999, 11, 31));
  expect(readCompact(jws)).toBeDefined();
  expect(jws.length).toBeGreaterThan(3_400);
});
