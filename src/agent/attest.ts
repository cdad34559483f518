/** Says how far the agent's word goes: what a log can call complete ends at the last attestation. */
import { canonical } from "../core/json.ts";
import { type Attestation, TYP } from "../core/report.ts";
import { utf8Length } from "../core/text.ts";
import { instantText } from "../core/unit.ts";
import { type Client, refusal } from "./client.ts";
import { signer } from "./key.ts";
import { Patience } from "./patience.ts";
import { malformedIn, type Source } from "./sources.ts";
import type { AgentState, Enrolment } from "./state.ts";

/** While an attestation is refused for a moment, no import begins that would send what is new. */
const PATIENCE_MS = 60_000;
const FILES_MAX = 64;
/** With header and signature, a compact JWS then stays under its 4,096 bytes. */
const PAYLOAD_BYTES_MAX = 2_800;

/**
 * Signs by the enrolment's key, and sends for a minute: the next import attests to more.
 * @throws AgentError `refused`, `unavailable`
 */
export async function attest(
  state: AgentState,
  enrolment: Enrolment,
  client: Client,
): Promise<void> {
  const patience = new Patience(PATIENCE_MS, Number.POSITIVE_INFINITY);
  // Any answer has the server's clock. Where nothing was sent yet, this asks for one.
  if (client.clockOffset === undefined) await client.request("livez", undefined, patience);
  const spool = state.spool(enrolment.log);
  const sources = state.sources.all();
  const attestation = withFiles(sources, {
    clock_offset_ms: String(client.clockOffset ?? 0),
    counter: String(spool.counter(enrolment.kid)),
    issued_at: instantText(client.now()),
    log: enrolment.log,
    malformed: String(sources.reduce((sum, source) => sum + malformedIn(source), 0)),
    rejected: String(spool.rejected),
    spool: String(spool.depth),
  });
  const jws = signer(state.key(enrolment.kid), TYP.attestation)(attestation);
  const post = { type: "application/jose", body: jws };
  const answer = await client.request("v1/attestations", post, patience);
  if (answer.status !== 201) throw refusal(client, "the attestation", answer);
}

/** The newest files, by their dated names, as far as one JWS holds them. */
function withFiles(sources: Source[], rest: Omit<Attestation, "files">): Attestation {
  const files = sources
    .map(({ name, offset }) => ({ name, offset: String(offset) }))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .slice(-FILES_MAX);
  while (utf8Length(canonical({ ...rest, files })) > PAYLOAD_BYTES_MAX) files.shift();
  return { ...rest, files };
}
