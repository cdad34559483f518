/** Runners and their keys: enrolled, claimed, rotated, revoked. */
import type { z } from "zod";
import { admissibleKey, thumbprint, verdict } from "../../src/core/ed25519.ts";
import type { Body } from "../../src/core/entry.ts";
import { Claim, Rotation, TYP } from "../../src/core/report.ts";
import { decodeBase64url } from "../../src/core/text.ts";
import { Runs } from "../tally/runs.ts";
import { type Rules, starts, type Turn } from "./rule.ts";
import { append, type Key, type State } from "./state.ts";
import { readStatement, type Statement } from "./statement.ts";

export const KEY_RULES = {
  enrolment,
  key: enterKey,
  key_rotated: rotateKey,
  key_revoked: revokeKey,
} satisfies Rules;

function enrolment(state: State, body: Body<"enrolment">, turn: Turn): void {
  for (const line of body.runners) {
    const needed = line.runner_type !== "instance";
    turn.expect(
      needed === body.namespaces.length > 0,
      "namespaces-needed",
      `${line.runner_type} runner, ${body.namespaces.length} namespaces`,
    );
    const earlier = state.runners.get(line.uuid);
    const tracking = earlier?.[0]?.tracking ?? line.tracking;
    turn.expect(line.tracking === tracking, "two-trackings", `${line.uuid} is ${tracking}`);
    starts(turn, line.effective_from, earlier);
    append(state.runners, line.uuid, line);
  }
  state.enrolments.set(turn.index, body);
}

function enterKey(state: State, { enrolment, jws, kid }: Body<"key">, turn: Turn): void {
  const claim = statementIn(state, turn, jws, { typ: TYP.claim, shape: Claim });
  const publicKey = claim && decodeBase64url(claim.payload.public_key.x);
  if (claim === undefined || publicKey === undefined) return;
  const own = claim.jws.kid === kid && thumbprint(publicKey) === kid;
  const admissible = own && admissibleKey(publicKey);
  turn.expect(admissible, "inadmissible-key", `kid ${kid}`);
  if (admissible) signed(state, turn, claim, publicKey);

  const index = BigInt(enrolment);
  const token = state.enrolments.get(index)?.token_sha256;
  turn.expect(token === claim.payload.token_sha256, "unknown-enrolment", `entry ${enrolment}`);
  turn.expect(!state.keys.has(kid), "key-in-use", `kid ${kid}`);
  const before = state.heirs.get(kid);
  if (before === undefined || before.revoked || before.enrolment !== index) {
    turn.expect(!state.claimed.has(index), "token-used", `enrolment ${enrolment}`);
    const until = state.enrolments.get(index)?.claim_until ?? "";
    turn.expect(turn.at <= until, "token-expired", `claimed until ${until}, at ${turn.at}`);
  }
  state.claimed.add(index);
  if (!admissible || state.keys.has(kid)) return;
  const named = { kid, publicKey, enrolment: index, index: turn.index };
  const silent = {
    attested: "",
    claimed: 0n,
    came: new Runs(),
    excused: undefined,
    decided: false,
  };
  const lasting = { end: undefined, endedAt: "", final: undefined, revoked: false };
  state.keys.set(kid, { ...named, ...silent, ...lasting });
}

function rotateKey(state: State, { jws }: Body<"key_rotated">, turn: Turn): void {
  const rotation = statementIn(state, turn, jws, { typ: TYP.rotation, shape: Rotation });
  const successor = rotation && decodeBase64url(rotation.payload.public_key.x);
  if (rotation === undefined || successor === undefined) return;
  const { keys, heirs } = state;
  const old = keys.get(rotation.jws.kid);
  turn.expect(old !== undefined, "jws-key", `kid ${rotation.jws.kid}`);
  if (old === undefined) return;
  signed(state, turn, rotation, old.publicKey);
  turn.expect(old.end === undefined, "key-has-ended", `kid ${old.kid}`);
  const kid = thumbprint(successor);
  turn.expect(!keys.has(kid) && !heirs.has(kid), "key-in-use", `successor ${kid}`);
  endKey(old, rotation.payload.final_counter, turn);
  old.final = BigInt(rotation.payload.final_counter);
  heirs.set(kid, old);
}

function revokeKey(
  state: State,
  { kid, last_trusted_counter }: Body<"key_revoked">,
  turn: Turn,
): void {
  const key = state.keys.get(kid);
  turn.expect(key !== undefined, "unknown-key", `kid ${kid}`);
  if (key === undefined) return;
  const earlier = !key.revoked || key.end === undefined || BigInt(last_trusted_counter) < key.end;
  turn.expect(earlier, "key-has-ended", `kid ${kid}, at counter ${key.end}`);
  endKey(key, last_trusted_counter, turn);
  key.revoked = true;
}

function statementIn<P extends { log: string }>(
  state: State,
  turn: Turn,
  text: string,
  { typ, shape }: { typ: string; shape: z.ZodType<P> },
): Statement<P> | undefined {
  const statement = readStatement(text, typ, shape);
  if (typeof statement === "string") {
    turn.expect(false, statement, `expected ${typ}`);
    return undefined;
  }
  const { log } = statement.payload;
  turn.expect(log === state.id, "jws-log", `a statement for log ${log}`);
  return statement;
}

function signed(
  state: State,
  turn: Turn,
  { jws }: Statement<unknown>,
  publicKey: Uint8Array,
): void {
  const holds = verdict(jws.signature, jws.input, publicKey, state.tools.verify);
  turn.expect(holds, "jws-signature", `by ${jws.kid}`);
}

/** Of several ends the lowest counts. */
function endKey(key: Key, counter: string, { at }: Turn): void {
  const end = BigInt(counter);
  if (key.end === undefined) key.endedAt = at;
  if (key.end === undefined || end < key.end) key.end = end;
}
