/** Claims an enrolment with its one-time token, for a key that is made here. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { type Claim, TYP } from "../core/report.ts";
import { encodeBase64 } from "../core/text.ts";
import { instantText, Kid, LogId, NonEmptyText } from "../core/unit.ts";
import { type Client, parseAnswer, refusal } from "./client.ts";
import { signer } from "./key.ts";
import type { AgentState, Enrolment, PendingClaim } from "./state.ts";
import { agree, reconcile, Shown, type Trust } from "./trust.ts";

const Claimed = Shown.extend({
  log: LogId,
  kid: Kid,
  platform: z.string(),
  unique_id: NonEmptyText,
  runners: z.array(NonEmptyText),
});

export interface ClaimOptions {
  log: string;
  token: string;
  /** Keys of the log that the service's must be; what it shows is believed when left out. */
  pinned?: Trust | undefined;
}

/**
 * Safe to repeat, also after a crash at any moment: key and claim are durable before they are sent,
 * the same claim is sent again, and the service answers it as before.
 * @throws AgentError `refused`, for a token that is unknown, expired, or another's; `untrusted`, when
 *   the service shows another key of the log than was pinned, or was known before
 */
export async function claim(
  state: AgentState,
  client: Client,
  { log, token, pinned }: ClaimOptions,
): Promise<Enrolment> {
  const digest = encodeBase64(createHash("sha256").update(token).digest());
  const known = reconcile(state.trust(log), pinned);
  const done = state.settings.enrolments.find(({ token_sha256 }) => token_sha256 === digest);
  if (done !== undefined) {
    if (known !== undefined) state.save(state.trusting(known));
    return done;
  }
  const pending = prepare(state, client, log, digest);
  const body = JSON.stringify({ token, claim: pending.claim });
  const answer = await client.request("v1/enrolments/claim", { type: "application/json", body });
  // Kept also when refused: an earlier try may have got through, and this one asked a wrong address.
  if (![200, 201].includes(answer.status)) throw refusal(client, "the claim", answer);
  const { platform, unique_id, runners, ...shown } = parseAnswer(Claimed, client, answer);
  const trust = agree(log, known, shown);
  const enrolment: Enrolment = {
    unique_id,
    log,
    server: client.server,
    platform,
    kid: pending.kid,
    runners,
    token_sha256: digest,
  };
  const { enrolments, claims } = state.settings;
  state.save({
    enrolments: [...enrolments, enrolment],
    claims: claims.filter((other) => other !== pending),
    ...(trust && state.trusting(trust)),
  });
  return enrolment;
}

function prepare(state: AgentState, client: Client, log: string, digest: string): PendingClaim {
  const { claims } = state.settings;
  const sent = claims.find((other) => other.token_sha256 === digest && other.log === log);
  if (sent !== undefined) return sent;
  const key = state.createKey();
  const payload: Claim = {
    issued_at: instantText(client.now()),
    log,
    public_key: key.publicKey,
    token_sha256: digest,
  };
  const pending = {
    log,
    kid: key.kid,
    token_sha256: digest,
    claim: signer(key, TYP.claim)(payload),
  };
  state.save({ claims: [...claims, pending] });
  return pending;
}
