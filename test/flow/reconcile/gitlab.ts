/**
 * A stand-in of GitLab's jobs API: its forms, its keyset pages, and what goes wrong with it. Members that nobody
 * reads are in its answers, as in GitLab's.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { z } from "zod";
import { instantText } from "../../../src/core/unit.ts";
import { type Pulled, type Pulling, pullStep } from "../../../src/flow/reconcile/pull.ts";

export interface ApiJob {
  id: number;
  runner: number;
  project: number;
  status: string;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
  /** As it stands in the JSON. */
  duration: string | null;
}

/** A job of a minute, made just before it; by epoch milliseconds. */
export function jobEnded(id: number, ended: number, more: Partial<ApiJob> = {}): ApiJob {
  const times = {
    created_at: instantText(ended - 61_000),
    started_at: instantText(ended - 60_000),
    finished_at: instantText(ended),
  };
  return { id, runner: 700, project: 50, status: "success", duration: "60.0", ...times, ...more };
}

/** What the next request meets instead of an answer; undefined: an answer. */
export type Fault =
  | { status: number; headers?: Record<string, string> }
  | "cut"
  | "half"
  | undefined;

export interface StandIn {
  url: string;
  token: string;
  jobs: ApiJob[];
  /** Taken one by one. */
  faults: Fault[];
  /** Paths and queries, in their order. */
  asked: string[];
  /** After each page that was answered. */
  afterPage: (page: number) => void;
  /** Of the headers of each answer. */
  headers: Record<string, string>;
  close(): Promise<void>;
}

export async function startStandIn(): Promise<StandIn> {
  const server = createServer((request, response) => answer(standIn, request, response));
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const standIn: StandIn = {
    url: `http://127.0.0.1:${port}`,
    token: "glpat-stand-in",
    jobs: [],
    faults: [],
    asked: [],
    afterPage: () => undefined,
    headers: {},
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return standIn;
}

const RUNNER_JOBS = /^\/api\/v4\/runners\/(\d+)\/jobs$/;
const PROJECT_JOB = /^\/api\/v4\/projects\/(\d+)\/jobs\/(\d+)$/;
const Query = z.object({
  order_by: z.literal("id"),
  sort: z.literal("desc"),
  pagination: z.literal("keyset"),
});

function answer(standIn: StandIn, request: IncomingMessage, response: ServerResponse): void {
  const { faults, headers, token, url } = standIn;
  standIn.asked.push(request.url ?? "");
  const fault = faults.shift();
  if (fault === "cut") return void request.socket.destroy();
  if (typeof fault === "object")
    return void response.writeHead(fault.status, fault.headers).end("{}");
  if (request.headers["private-token"] !== token) return void response.writeHead(401).end("{}");
  const { pathname, searchParams } = new URL(request.url ?? "", url);
  const [, runner] = RUNNER_JOBS.exec(pathname) ?? [];
  const [, project, number] = PROJECT_JOB.exec(pathname) ?? [];
  const body =
    runner === undefined
      ? one(standIn, project, number)
      : page(standIn, runner, searchParams, response);
  if (body === undefined) return void response.writeHead(404).end('{"message":"404 Not found"}');
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  response.setHeader("content-type", "application/json");
  if (fault !== "half") return void response.end(body);
  response.setHeader("content-length", Buffer.byteLength(body));
  response.write(body.slice(0, body.length / 2), () => request.socket.destroy());
}

function one({ jobs }: StandIn, project?: string, number?: string): string | undefined {
  const found = jobs.find(({ id, project: of }) => String(id) === number && String(of) === project);
  return found && json(found, `,"runner":{"id":${found.runner},"description":"shared"}`);
}

function page(
  standIn: StandIn,
  runner: string,
  query: URLSearchParams,
  response: ServerResponse,
): string {
  Query.parse(Object.fromEntries(query));
  const size = Number(query.get("per_page"));
  const below = Number(query.get("cursor") ?? Number.MAX_SAFE_INTEGER);
  const all = standIn.jobs.filter((job) => String(job.runner) === runner && job.id < below);
  const listed = all.sort((a, b) => b.id - a.id).slice(0, size);
  const last = listed.at(-1);
  if (last !== undefined && all.length > size) {
    query.set("cursor", String(last.id));
    const next = `${standIn.url}/api/v4/runners/${runner}/jobs?${query}`;
    response.setHeader("link", `<${standIn.url}/first>; rel="first", <${next}>; rel="next"`);
  }
  const body = `[${listed.map((job) => json(job, "")).join(",")}]`;
  standIn.afterPage(standIn.asked.length);
  return body;
}

function json(job: ApiJob, more: string): string {
  const text = (value: string | null): string => (value === null ? "null" : JSON.stringify(value));
  const times = `"created_at":${text(job.created_at)},"started_at":${text(job.started_at)},"finished_at":${text(job.finished_at)}`;
  return `{"id":${job.id},"status":"${job.status}","stage":"test",${times},"erased_at":null,"duration":${job.duration ?? "null"},"queued_duration":0.5,"user":{"id":1,"username":"root"},"project":{"id":${job.project},"path":"x"}${more}}`;
}

const HOUR = 3_600_000;

/** All steps that are due, with what GitLab refused; what is to wait is made due, and how long it was to wait is kept. */
export async function walkAll(
  pulling: Pulling,
  log: string,
): Promise<{ refused: string[]; restsMs: number[]; steps: number }> {
  const { sql } = pulling;
  const all = { refused: [] as string[], restsMs: [] as number[], steps: 0 };
  for (;;) {
    const [mark] = await sql<{ rest: string; walking: boolean }[]>`
      select extract(epoch from due_at - clock_timestamp()) * 1000 as rest, walk_to is not null as walking
      from pull_marks where log = ${log}`;
    if (all.steps > 0 && mark?.walking === false && all.refused.length === 0) return all;
    if (all.steps > 0 && mark?.walking === false && Number(mark.rest) > HOUR / 2) return all;
    await sql`update pull_marks set due_at = '-infinity' where log = ${log}`;
    const pulled: Pulled | undefined = await pullStep(pulling);
    if (pulled === undefined) throw new Error("nothing is due");
    all.steps += 1;
    if (pulled.failure === undefined) continue;
    all.refused.push(pulled.failure.reason);
    const [after] = await sql<{ rest: string }[]>`
      select extract(epoch from due_at - clock_timestamp()) * 1000 as rest from pull_marks where log = ${log}`;
    all.restsMs.push(Number(after?.rest));
  }
}
