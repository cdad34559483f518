/** An agent's high-water marks become an entry: completeness is claimed up to there, and its silence is over. */
import { readCompact } from "../../core/jws.ts";
import { Problem } from "../../core/problem.ts";
import { Attestation, TYP } from "../../core/report.ts";
import type { Pace } from "../access/pace.ts";
import type { Random } from "../clock.ts";
import type { Appender } from "../log/append.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { endSilence } from "../reconcile/open.ts";
import type { Directory } from "./directory.ts";
import { examine } from "./examine.ts";

interface Attesting {
  appender: Appender;
  directory: Directory;
  pace?: Pace;
  random: Random;
}

/**
 * @throws Problem `malformed`, `unknown-key`, `bad-signature`, `wrong-typ`, `non-canonical`, `schema`,
 *   `wrong-log`, `rate-limited`, and `key-has-ended` for a counter that the key's end no longer trusts
 */
export async function attest(
  { appender, directory, pace, random }: Attesting,
  text: string,
): Promise<{ log: string } & Receipt> {
  const kid = readCompact(text)?.kid;
  const keys = await directory.find(kid === undefined ? [] : [kid]);
  const signed = examine(text, TYP.attestation, Attestation, (jws) => keys.get(jws.kid));
  if (signed.kind === "refused") throw new Problem(signed.code);
  await pace?.(signed.kid);
  const { log, spool } = signed.payload;
  if ((await directory.home(signed.kid, log)) !== log) throw new Problem("wrong-log");
  const receipt = await appender.together(log, async (put, { tx }) => {
    const receipt = await put("attestation", { jws: text });
    const heard = { kid: signed.kid, evidence: receipt.index, delivered: spool === "0" };
    await endSilence({ put, tx, random }, log, heard);
    return receipt;
  });
  return { log, ...receipt };
}
