/** The tool's test of itself, before it judges anything. */
import { CannotLook } from "../finding.ts";
import { sha256, verifyNow } from "../native.ts";
import { type SelfTest, selfTest } from "../self-test/self-test.ts";

/** Throws `CannotLook` when an answer is not the known one. */
export async function testSelf(): Promise<SelfTest[]> {
  const tests = await selfTest({ hash: sha256, verify: verifyNow });
  const failed = tests.filter(({ passed }) => !passed).map(({ name }) => name);
  if (failed.length > 0) {
    throw new CannotLook(`this program gives wrong answers: ${failed.join(", ")}`);
  }
  return tests;
}
