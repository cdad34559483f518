/** Who has access, asked in every way that is answered differently. */
import { type Answered, type House, type Request, tokenOf } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

/** Somebody is registered, looked at, and barred. */
export async function askOfOversight(
  tell: Tell,
  { house, log }: { house: House; log: string },
): Promise<void> {
  const auditor = await tokenOf(["auditor"]);
  await tell(`GET /v1/logs/${log}/holds`, { token: auditor });
  const today = new Date().toISOString().slice(0, 10);
  await tell(`GET /v1/access/${log}?day=${today}`);
  const people = (await tell(`GET /v1/principals?log=${log}`)).json["principals"];
  const ids = (people as { id: string; subject: string }[]).map(({ id }) => id);
  const period = { from: "2026-01-01", to: today, remove: [] };
  // The register has the days of the database's clock, of which an entry must be the later one.
  house.clock.time = Math.max(house.clock.time, Date.now());
  for (const keep of [ids.slice(1), ids]) {
    await tell(`POST /v1/logs/${log}/access_reviews`, { json: { ...period, keep } });
  }
  const { id } = (people as { id: string; subject: string }[]).find(
    ({ subject }) => subject === "auditor",
  ) ?? { id: "" };
  for (const of of [{}, {}, { log }]) {
    await tell(`POST /v1/principals/${id}/bar`, { json: { reason: "left", ...of } });
  }
  for (const _ of [201, 200]) {
    await tell(`POST /v1/principals/${id}/unbar`, { json: { reason: "came back" } });
  }
}
