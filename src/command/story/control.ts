/** The scene of financial control: a correction by two persons, a break, and a month that closes for ever. */
import { createHash } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { parseSignedComputeMs, signedComputeMinutes } from "../../core/charge.ts";
import { readSigningKey } from "../../custody.ts";
import { LOCAL_ISSUER } from "../../flow/access/configured.ts";
import { type Api, ApiError, ask, call } from "../api.ts";
import { type DemoBuild, demoBuilds, FIRST_JOB, HOSTED_RUNNERS } from "../demo.ts";
import { dataFolder } from "../folder.ts";
import { localIdToken, localToken } from "../issuer.ts";
import type { ControlFacts } from "./facts.ts";
import { type Host, usageOfBuild } from "./scenes.ts";

const HOUR_MS = 3_600_000;
const POLL_MS = 200;
const BUILDS = 10;
const SOURCE = "portal";
/** Runs on the demo's first runner, and on no host that reports. Long enough before for its report to be missed. */
const LOST = {
  ...{ job: String(FIRST_JOB + 20_999n), runner_id: "701", seconds: 720 },
  beforeEnd: 26 * HOUR_MS,
};
const MINUTE = "60000.000000";

const WHY = { reason: "outage", ticket: "INC-1" } as const;
const ROLES = ["operator", "provisioner", "finance", "platform", "approver", "auditor"] as const;

interface Stage {
  /** Of who proposes. */
  api: Api;
  data: string;
  log: string;
  unique_id: string;
  billing_from: string;
  host: Host;
  now: number;
}

interface Asked {
  action: string;
  content: object;
}
interface Opened {
  index: string;
  nonce: string;
}
interface Approved {
  index: string;
  approval: string;
}

export async function controlScene(stage: Stage): Promise<ControlFacts> {
  const { host, log, now, unique_id } = stage;
  const { end, month } = lastMonth(now);
  await underTwo(stage);
  const builds = demoBuilds(unique_id, end - HOUR_MS, BUILDS, FIRST_JOB + 20_000n);
  await host.write(builds, now);
  await host.deliver();
  const adjusted = await adjust(stage, builds, month);
  await call(await as(stage, "platform"), "PUT", `/v1/accounts/${log}`, {
    ...{ account_id: "A-1001", source: SOURCE, source_version: "1" },
    effective_from: new Date(end - 24 * HOUR_MS).toISOString(),
  });
  const broken = await breakOf(stage, builds, end);
  const closing = { action: "month_closing", content: { month } };
  const refused = await refusalOf(propose(stage, closing));
  const accepted = await decide(stage, {
    action: "break_resolved",
    content: { ...WHY, break: broken.index, evidence: "", outcome: "accepted" },
  });
  await approve(stage, await onceMatched(() => propose(stage, closing)));
  const text = await statementOf(stage, month);
  const { allocations, anchor, closed, totals } = JSON.parse(text);
  return {
    adjusted,
    broken: { ...broken, refused, accepted: accepted.index },
    closed: {
      month,
      index: closed.index,
      jobs: totals.jobs,
      minutes: minutesOf(allocations.usage),
      anchor: anchor.kind === "none" ? "UNANCHORED" : anchor.kind,
      sha256: createHash("sha256").update(text).digest("base64"),
    },
  };
}

function lastMonth(now: number): { month: string; end: number } {
  const end = Date.parse(`${new Date(now).toISOString().slice(0, 7)}-01T00:00:00.000Z`);
  return { end, month: `${new Date(end - 1).toISOString().slice(0, 7)}-01` };
}

/** From here on nobody changes money alone. Whom development's own issuer lets in is all that there is to name. */
async function underTwo(stage: Stage): Promise<void> {
  const { billing_from } = stage;
  const grants = ROLES.map((role) => {
    return { claim: "roles", issuer: LOCAL_ISSUER, namespaces: "*", role, value: role };
  });
  await propose(stage, { action: "role_mapping", content: { grants } });
  const content = { billing_from, control: "dual", sources: [SOURCE] };
  await propose(stage, { action: "mode", content });
}

async function propose({ api, log }: Stage, asked: Asked): Promise<Opened> {
  return await call<Opened>(api, "POST", "/v1/proposals", { log, ...asked, ...WHY });
}

/** Somebody who is nothing but this: whoever decides about money is no system, and the second person another. */
async function as({ api, data }: Stage, role: "approver" | "platform"): Promise<Api> {
  const key = readSigningKey(dataFolder(data).keys.issuer);
  const scope = [{ role, logs: "*", namespaces: "*" }] as const;
  return { ...api, token: await localToken(key, scope, { subject: role }) };
}

/** The second person signs in at development's own issuer. */
async function approve(stage: Stage, { index, nonce }: Opened): Promise<Approved> {
  const key = readSigningKey(dataFolder(stage.data).keys.issuer);
  const id_token = await localIdToken(key, { nonce, subject: "approver", roles: ["approver"] });
  const path = `/v1/proposals/${stage.log}/${index}/approval`;
  return await call<Approved>(await as(stage, "approver"), "POST", path, { id_token });
}

async function decide(stage: Stage, asked: Asked): Promise<Approved> {
  return await approve(stage, await propose(stage, asked));
}

/** A minute of the first build is given back. */
async function adjust(
  stage: Stage,
  [build]: readonly DemoBuild[],
  month: string,
): Promise<ControlFacts["adjusted"]> {
  const { api, log } = stage;
  if (build === undefined) throw new Error("story: no builds");
  const { index: entry, rating, report } = await usageOfBuild(api, log, build);
  const { project_id, root_namespace_id: namespace_id } = report.job;
  const line = { amount: `-${MINUTE}`, entry, namespace_id, project_id, reverses: "" };
  const content = {
    ...{ ...WHY, billing_month: month, credit_run: "", first_line: "0" },
    lines: [{ ...line, usage_month: month }],
  };
  const opened = await propose(stage, { action: "adjustment", content });
  const { approval, index } = await approve(stage, opened);
  const after = await usageOfBuild(api, log, build);
  return {
    job: build.job,
    proposal: opened.index,
    approval,
    index,
    before: rating.compute_minutes,
    after: minutesOf(after.net_compute_ms),
  };
}

/** What the platform saw and nobody reported, found by the service as it holds the two against each other. */
async function breakOf(
  stage: Stage,
  builds: readonly DemoBuild[],
  end: number,
): Promise<Omit<Broken, "refused" | "accepted">> {
  const { api, log } = stage;
  const { beforeEnd, job, seconds } = LOST;
  const to = new Date(end).toISOString();
  await call(await as(stage, "platform"), "POST", `/v1/logs/${log}/platform_jobs`, {
    jobs: [...builds, { ...LOST, finishedAt: end - beforeEnd }].map(seenJob),
    covered: HOSTED_RUNNERS.map((runner_id) => ({ runner_id, to })),
  });
  for (;;) {
    const { breaks } = await call<{ breaks: { code: string; index: string; job_id: string }[] }>(
      api,
      "GET",
      `/v1/logs/${log}/breaks`,
    );
    const found = breaks.find(({ job_id }) => job_id === job);
    if (found !== undefined) {
      return { job, minutes: String(seconds / 60), code: found.code, index: found.index };
    }
    await delay(POLL_MS);
  }
}

/** A job as the platform lists it. */
function seenJob(build: Pick<DemoBuild, "job" | "runner_id" | "seconds" | "finishedAt">) {
  const { job, runner_id, seconds, finishedAt } = build;
  return {
    ...{ job_id: job, runner_id, status: "success", duration: String(seconds) },
    started_at: new Date(finishedAt - seconds * 1000).toISOString(),
    finished_at: new Date(finishedAt).toISOString(),
  };
}

/** As soon as the service has held what is covered against the log. */
async function onceMatched<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof ApiError) || !error.message.includes("missing matching")) throw error;
    }
    await delay(POLL_MS);
  }
}

type Broken = ControlFacts["broken"];

/** What keeps a month open, in the words of the refusal. */
async function refusalOf(attempt: Promise<unknown>): Promise<string> {
  try {
    await attempt;
  } catch (error) {
    if (error instanceof ApiError) return error.code;
    throw error;
  }
  throw new Error("story: a month with an open break could be closed");
}

/** As soon as the month is closed, which the service does by itself. */
async function statementOf({ api, log }: Stage, month: string): Promise<string> {
  for (;;) {
    try {
      const accept = "application/json";
      return await ask(api, "GET", `/v1/months/${log}/${month}/statement`, { accept });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 404) throw error;
    }
    await delay(POLL_MS);
  }
}

const minutesOf = (text: string): string => signedComputeMinutes(parseSignedComputeMs(text));
