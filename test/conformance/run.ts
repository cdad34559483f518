/**
 * `npm run conformance -- usage DIR … | reconciliation DIR … | vectors DIR`: published data against what we do
 * with it.
 * Exit 0 when all that was looked at holds, 1 otherwise, 2 for a wrong call.
 */
import { checkReconciliation } from "./reconciliation.ts";
import { checkUsage } from "./usage.ts";
import type { Vector } from "./vector.ts";
import { checkVectors } from "./vectors.ts";

const CHECKS: Record<string, (folder: string) => AsyncIterable<Vector>> = {
  reconciliation: checkReconciliation,
  usage: checkUsage,
  vectors: checkVectors,
};

const [what = "", ...folders] = process.argv.slice(2);
const check = CHECKS[what];
if (check === undefined || folders.length === 0) {
  console.error("usage: npm run conformance -- usage DIR … | reconciliation DIR … | vectors DIR");
  process.exit(2);
}
const tally = { passed: 0, failed: 0, left: 0 };
for (const folder of folders) {
  for await (const vector of check(folder)) {
    tally[vector.outcome] += 1;
    if (vector.outcome === "passed" && what === "vectors") continue;
    const detail = "detail" in vector && vector.detail !== undefined ? `: ${vector.detail}` : "";
    console.log(`${vector.outcome.padEnd(6)} ${vector.name}${detail}`);
  }
}
console.log(`${what}: ${tally.left} left for later, with the reason above`);
console.log(`${tally.passed} passed, ${tally.failed} failed`);
process.exitCode = tally.failed === 0 && tally.passed > 0 ? 0 : 1;
