/** Everything that is answered about what two persons decide, and what sources say. */
import { NOW } from "../core/history.ts";
import { type Answered, idTokenOf, type Request, tokenOf } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

/** At a log of its own, since `log` is under single control; each as often as an answer differs. */
export async function askOfControl(
  tell: Tell,
  { log, now }: { log: string; now: number },
): Promise<void> {
  const body = { platform: "dotcom", billing_from: NOW, control: "dual" };
  const made = await tell("POST /v1/logs", { json: { ...body, unique_id: "dual" } });
  const dual = String(made.json["log"]);
  const asked = { action: "visibility", reason: "test", ticket: "1" };
  const json = { log: dual, content: { public: false }, ...asked };
  await tell("POST /v1/proposals", { json: { ...json, log } });
  await tell("POST /v1/proposals", { json: { ...json, action: "quota" } });
  const approver = { token: await tokenOf(["approver"]) };
  for (const end of ["approval", "refusal", "withdrawal"]) {
    const { index, nonce } = (await tell("POST /v1/proposals", { json })).json;
    const path = `/v1/proposals/${dual}/${index}`;
    const id_token = await idTokenOf(["approver"], String(nonce), now);
    const said = end === "approval" ? { id_token } : { reason: "no" };
    const who = end === "withdrawal" ? {} : approver;
    for (const _ of [201, 409]) await tell(`POST ${path}/${end}`, { ...who, json: said });
    await tell(`GET ${path}`);
  }
  await tell(`GET /v1/proposals?log=${dual}`);
  const count = { day: "2026-11-01", kind: "quota", source: "gitlab", stated: "0" };
  for (const _ of [201, 200]) await tell(`POST /v1/logs/${log}/source_counts`, { json: count });
}
