/**
 * GitLab's side of the runner's API, over real HTTP, with its memory: which jobs run, their logs, how each
 * ended. It follows lib/api/ci/runner.rb and its services, and misbehaves on order.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { RUNNER, UNIQUE_ID } from "../records.ts";

export interface GitLabJob {
  status: "pending" | "running" | "success" | "failed";
  failureReason: string;
  trace: Buffer;
  /** Each PUT's state, in order. */
  states: string[];
}

/** True when it dealt with the response itself. */
export type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => boolean;

export const TOKEN = "glcbt-64_a-secret";

export class GitLab {
  readonly server: Server = createServer();
  readonly jobs = new Map<string, GitLabJob>();
  /** Taken by those requests, in order, after their bodies were read. */
  misbehaviours: { on: RegExp; act: Misbehaviour }[] = [];
  /** `METHOD path`, with raw headers. */
  readonly asked: { line: string; headers: string[]; body: Buffer }[] = [];
  readonly #queue: string[] = [];

  constructor() {
    const serve = (request: IncomingMessage, response: ServerResponse): void => {
      this.#serve(request, response).catch(() => response.destroy());
    };
    this.server.on("request", serve);
  }

  async start(): Promise<URL> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return new URL(`http://127.0.0.1:${(this.server.address() as AddressInfo).port}`);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }

  /** A job waits for a runner. */
  queue(id: string): void {
    this.jobs.set(id, { status: "pending", failureReason: "", trace: Buffer.alloc(0), states: [] });
    this.#queue.push(id);
  }

  job(id: string): GitLabJob {
    const job = this.jobs.get(id);
    if (job === undefined) throw new Error(`no job ${id}`);
    return job;
  }

  lines(): string[] {
    return this.asked.map(({ line }) => line);
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const line = `${request.method} ${request.url}`;
    const at = this.misbehaviours.findIndex(({ on }) => on.test(line));
    const body = await buffer(request);
    this.asked.push({ line, headers: request.rawHeaders, body });
    const [misbehaviour] = at === -1 ? [] : this.misbehaviours.splice(at, 1);
    if (misbehaviour?.act(request, response)) return;
    const [, id = "", trace] = /\/jobs\/([0-9]+)(\/trace)?/.exec(line) ?? [];
    if (line.startsWith("POST /api/v4/jobs/request")) this.#give(request, response);
    else if (request.method === "PUT") this.#update(this.jobs.get(id), request, body, response);
    else if (trace !== undefined) this.#append(this.jobs.get(id), request, body, response);
    else response.writeHead(404).end();
  }

  #give(request: IncomingMessage, response: ServerResponse): void {
    const id = this.#queue.shift();
    if (id === undefined) {
      response.writeHead(204, { "X-GitLab-Last-Update": "now" }).end();
      return;
    }
    const payload =
      `{"id":${id},"token":${JSON.stringify(TOKEN)},"job_info":{"id":${id},"name":"build","project_id":50010,` +
      `"root_namespace_id":1001,"instance_uuid":"${UNIQUE_ID}"},"runner_info":{"uuid":"${RUNNER}","timeout":3600},` +
      `"variables":[{"key":"SECRET","value":"a variable","masked":true}],"git_info":{"repo_url":"x"}}`;
    const isGzip = request.headers["accept-encoding"] === "gzip";
    const body = isGzip ? gzipSync(payload) : Buffer.from(payload);
    const headers = { "Content-Type": "application/json", "Content-Length": body.length };
    response.writeHead(201, isGzip ? { ...headers, "Content-Encoding": "gzip" } : headers);
    response.end(body);
  }

  #update(
    job: GitLabJob | undefined,
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): void {
    const update = JSON.parse(body.toString());
    const { state, failure_reason = "", token = request.headers["job-token"] } = update;
    if (job === undefined || token !== TOKEN) return void response.writeHead(403).end();
    job.states.push(state);
    if (job.status === "success" || job.status === "failed") {
      return void response.writeHead(403, { "Job-Status": job.status }).end();
    }
    job.status = state;
    job.failureReason = failure_reason;
    response.writeHead(200, { "X-GitLab-Trace-Update-Interval": "3" }).end("200");
  }

  #append(
    job: GitLabJob | undefined,
    request: IncomingMessage,
    body: Buffer,
    response: ServerResponse,
  ): void {
    if (job === undefined || request.headers["job-token"] !== TOKEN) {
      return void response.writeHead(403).end();
    }
    if (job.status !== "running")
      return void response.writeHead(403, { "Job-Status": "failed" }).end();
    const start = Number(request.headers["content-range"]?.split("-")[0]);
    if (start !== job.trace.length) {
      return void response.writeHead(416, { Range: `0-${job.trace.length}` }).end();
    }
    job.trace = Buffer.concat([job.trace, body]);
    const headers = { "Job-Status": "running", Range: `0-${job.trace.length}` };
    response.writeHead(202, headers).end("0");
  }
}
