/** Replaces a key: the old one names its successor and its own last counter, then is silent. */
import { type Claim, type Rotation, TYP } from "../core/report.ts";
import { instantText } from "../core/unit.ts";
import { type Client, refusal } from "./client.ts";
import { signer } from "./key.ts";
import type { AgentState, Enrolment, PendingRotation } from "./state.ts";

/**
 * Fixes the old key's final counter. From its return on, nothing but `finishRotation` may speak for
 * the enrolment. Durable, and repeatable.
 */
export function beginRotation(
  state: AgentState,
  enrolment: Enrolment,
  now: number,
): PendingRotation {
  const { rotations } = state.settings;
  const begun = rotations.find(({ kid }) => kid === enrolment.kid);
  if (begun !== undefined) return begun;
  const { log, kid, token_sha256 } = enrolment;
  const successor = state.createKey();
  const issued_at = instantText(now);
  const rotation: Rotation = {
    final_counter: String(state.spool(log).counter(kid)),
    issued_at,
    log,
    public_key: successor.publicKey,
  };
  const claim: Claim = { issued_at, log, public_key: successor.publicKey, token_sha256 };
  const pending: PendingRotation = {
    kid,
    successor: successor.kid,
    rotation: signer(state.key(kid), TYP.rotation)(rotation),
    claim: signer(successor, TYP.claim)(claim),
  };
  state.save({ rotations: [...rotations, pending] });
  return pending;
}

/**
 * Sends the rotation until it is answered, then signs with the new key. What the old key signed stays
 * in the spool and is welcome for ever.
 * @throws AgentError `refused`
 */
export async function finishRotation(
  state: AgentState,
  pending: PendingRotation,
  client: Client,
): Promise<void> {
  const { rotation, claim } = pending;
  const body = JSON.stringify({ rotation, claim });
  const answer = await client.request("v1/keys/rotate", { type: "application/json", body });
  if (![200, 201].includes(answer.status)) throw refusal(client, "the rotation", answer);
  const { enrolments, rotations } = state.settings;
  state.save({
    enrolments: enrolments.map((enrolment) =>
      enrolment.kid === pending.kid ? { ...enrolment, kid: pending.successor } : enrolment,
    ),
    rotations: rotations.filter(({ kid }) => kid !== pending.kid),
  });
}
