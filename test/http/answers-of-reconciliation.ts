/** What platforms say of their jobs, asked in every way that is answered differently. */
import { vi } from "vitest";
import { readConfig } from "../../src/config.ts";
import { instantText } from "../../src/core/unit.ts";
import type { Route } from "../../src/http/access.ts";
import { type Answered, ask, beside, type House, type Request } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

const SECRET = "a secret of one log";
const DAY_MS = 86_400_000;

/** @returns what was answered by a process that knows the log's secret */
export async function askOfReconciliation(
  tell: Tell,
  { house, log }: { house: House; log: string },
): Promise<[Route, Answered][]> {
  const { reconciliation } = readConfig({});
  const platform = { log, pull: undefined, webhookSecret: SECRET, capacity: new Map() };
  const hearing = await beside(house, undefined, {
    reconciliation: { ...reconciliation, platforms: [platform] },
  });
  const hook = `POST /webhooks/gitlab/${log}`;
  const headers = { "x-gitlab-token": SECRET, "x-gitlab-event": "Job Hook" };
  const json = { object_kind: "build", build_id: 90, build_status: "created" };
  await tell(hook, { json });
  const heard = await ask(hearing, hook, { json, headers });
  const unread = await ask(hearing, hook, { json: {}, headers });

  const at = (agoMs: number): string => instantText(house.clock.time - agoMs);
  const times = { started_at: at(3 * DAY_MS), finished_at: at(2 * DAY_MS), duration: "86400" };
  const job = {
    runner_id: "700",
    project_id: "50",
    namespace_id: "7",
    status: "success",
    ...times,
  };
  const jobs = ["91", "92"].map((job_id) => ({ job_id, ...job }));
  const covered = [{ runner_id: "700", to: at(DAY_MS) }];
  await tell(`POST /v1/logs/${log}/platform_jobs`, { json: { jobs, covered } });
  await tell(`POST /v1/logs/${log}/platform_jobs`, { json: { jobs: [{}] } });

  const breaks = async (): Promise<Record<string, string>[]> => {
    const { json } = await tell(`GET /v1/logs/${log}/breaks`);
    return json["breaks"] as Record<string, string>[];
  };
  const missing = async (): Promise<Record<string, string> | undefined> => {
    return (await breaks()).find(({ code }) => code === "missing-report");
  };
  const found = await vi.waitUntil(missing, { timeout: 20_000, interval: 500 });
  const owner = `POST /v1/logs/${log}/breaks/${found["index"]}/owner`;
  await tell(owner, { json: {} });
  await tell(owner, { json: { owner: "somebody" } });
  await tell(`GET /v1/logs/${log}/breaks?state=all`);
  await tell(`GET /v1/logs/${log}/awaiting`);
  await tell(`GET /v1/logs/${log}/completeness?day=${at(2 * DAY_MS).slice(0, 10)}`);
  await tell(`GET /v1/logs/${log}/completeness`);
  const route = "POST /webhooks/gitlab/:log" as const;
  return [
    [route, heard],
    [route, unread],
  ];
}
