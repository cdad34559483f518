/** An agent's high-water marks become an entry: completeness is claimed up to there. */
import { readCompact } from "../../core/jws.ts";
import { Problem } from "../../core/problem.ts";
import { Attestation, TYP } from "../../core/report.ts";
import type { Pace } from "../access/pace.ts";
import type { Appender } from "../log/append.ts";
import type { Receipt } from "../log/commit-entry.ts";
import type { Directory } from "./directory.ts";
import { examine } from "./examine.ts";

/**
 * @throws Problem `malformed`, `unknown-key`, `bad-signature`, `wrong-typ`, `non-canonical`, `schema`,
 *   `wrong-log`, `rate-limited`, and `key-has-ended` for a counter that the key's end no longer trusts
 */
export async function attest(
  { appender, directory, pace }: { appender: Appender; directory: Directory; pace?: Pace },
  text: string,
): Promise<{ log: string } & Receipt> {
  const kid = readCompact(text)?.kid;
  const keys = await directory.find(kid === undefined ? [] : [kid]);
  const signed = examine(text, TYP.attestation, Attestation, (jws) => keys.get(jws.kid));
  if (signed.kind === "refused") throw new Problem(signed.code);
  await pace?.(signed.kid);
  const { log } = signed.payload;
  if ((await directory.home(signed.kid, log)) !== log) throw new Problem("wrong-log");
  const receipt = await appender.control(log, "attestation", () => ({ jws: text }));
  return { log, ...receipt };
}
