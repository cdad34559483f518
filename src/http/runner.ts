/** What agents say beside reports. The signed statement in the body is the credential. */
import { Problem } from "../core/problem.ts";
import { claim } from "../flow/key/claim.ts";
import { identify } from "../flow/key/identify.ts";
import { rotate } from "../flow/key/rotate.ts";
import { attest } from "../flow/report/attest.ts";
import { answerReceipt } from "./answer.ts";
import type { Services } from "./app.ts";
import { CONTROL_BYTES_MAX, mediaType, readJson, readText } from "./body.ts";
import { KeyRotation, TokenClaim } from "./operations/shapes.ts";
import type { Router } from "./router.ts";

export function runnerRoutes(router: Router, flow: Services["flow"]): void {
  router.open("POST /v1/attestations", async (ask) => {
    if (mediaType(ask.incoming) !== "jose") throw new Problem("unsupported-media-type");
    const { log, ...receipt } = await attest(flow, await readText(ask, CONTROL_BYTES_MAX));
    return answerReceipt(receipt, { log });
  });

  router.open("POST /v1/enrolments/claim", async (ask) => {
    const claimed = await claim(flow, await readJson(ask, TokenClaim));
    const { log, kid, platform, unique_id, runners } = claimed;
    const [identity] = await identify(flow.keyring, [log]);
    return answerReceipt(claimed, { log, kid, platform, unique_id, runners, ...identity });
  });

  router.open("POST /v1/keys/rotate", async (ask) => {
    const rotated = await rotate(flow, await readJson(ask, KeyRotation));
    return answerReceipt(rotated, { log: rotated.log, kid: rotated.kid });
  });
}
