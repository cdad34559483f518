/** An agent brings its own new key for an enrolment whose token it was given. */
import type { Prefix } from "../../core/prefix.ts";
import { Problem } from "../../core/problem.ts";
import type { Appender } from "../log/append.ts";
import type { Receipt } from "../log/commit-entry.ts";
import { tokenDigest } from "./enrol.ts";
import { provenClaim } from "./statement.ts";

export interface Claimed extends Receipt {
  log: string;
  kid: string;
  platform: Prefix["log"]["platform"];
  unique_id: string;
  /** UUIDs of the runners that the key may report. */
  runners: string[];
}

/**
 * The same key with the same token gets the same answer again, also when the token's time is over: its
 * first answer may have been lost. `written` is false then.
 *
 * @throws Problem `malformed`, `inadmissible-key`, `bad-signature`, `unknown-token`, `token-expired`,
 *   `token-used`, `key-in-use`
 */
export async function claim(
  { appender }: { appender: Appender },
  { token, claim: jws }: { token: string; claim: string },
): Promise<Claimed> {
  const { kid, payload } = provenClaim(jws);
  const { log, token_sha256 } = payload;
  if (tokenDigest(token) !== token_sha256) throw new Problem("unknown-token");
  let enrolled: Pick<Claimed, "platform" | "unique_id" | "runners"> | undefined;
  const receipt = await appender
    .control(log, "key", (prefix) => {
      const enrolment = prefix.enrolmentOfToken(token_sha256);
      const body = enrolment === undefined ? undefined : prefix.enrolment(enrolment);
      if (enrolment === undefined || body === undefined) throw new Problem("unknown-token");
      const runners = [...new Set(body.runners.map((runner) => runner.uuid))];
      const { platform, unique_id } = prefix.log;
      enrolled = { platform, unique_id, runners };
      const standing = prefix.key(kid);
      if (standing?.enrolment === enrolment) return standing.index;
      return { enrolment: String(enrolment), jws, kid };
    })
    .catch((error: unknown) => {
      // Whoever has no token learns nothing about which logs there are.
      const noLog = error instanceof Problem && error.code === "not-found";
      throw noLog ? new Problem("unknown-token") : error;
    });
  if (enrolled === undefined) throw new Error("claim: written without an enrolment");
  return { ...receipt, log, kid, ...enrolled };
}
