/**
 * gitlab-runner's side of a job, as its network/trace.go and commands/multi.go go about it, without waiting:
 * a test says when it touches, patches and ends.
 */
import { Agent, type IncomingMessage, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { TOKEN } from "./gitlab.ts";

export interface Answer {
  /** 0 where there was none. */
  status: number;
  jobStatus: string;
  headers: string[];
  body: Buffer;
}

const RETRIED = new Set([408, 429, 500, 502, 503, 504]);
const ATTEMPTS = 5;

export class Runner {
  readonly url: URL;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: URL | string) {
    this.url = new URL(url);
  }

  close(): void {
    this.#agent.destroy();
  }

  /** One exchange, never retried. */
  async send(method: string, path: string, body = "", headers: string[] = []): Promise<Answer> {
    const all = ["Host", this.url.host, "User-Agent", "gitlab-runner 19.4.0", ...headers];
    if (body !== "") all.push("Content-Length", String(Buffer.byteLength(body)));
    const { hostname, port } = this.url;
    return new Promise((resolve) => {
      const none = { status: 0, jobStatus: "", headers: [], body: Buffer.alloc(0) };
      const outgoing = request({ agent: this.#agent, hostname, port, method, path, headers: all });
      outgoing.on("error", () => resolve(none));
      outgoing.on("response", (answer: IncomingMessage) => {
        buffer(answer).then(
          (content) => {
            const jobStatus = String(answer.headers["job-status"] ?? "");
            const { statusCode: status = 0, rawHeaders } = answer;
            resolve({ status, jobStatus, headers: rawHeaders, body: content });
          },
          () => resolve(none),
        );
      });
      outgoing.end(body);
    });
  }

  /** As the runner's lowest layer, which looks at no header of what it tries again. */
  async #try(method: string, path: string, body: string, headers: string[]): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.send(method, path, body, headers);
      if (!RETRIED.has(answer.status) || attempt === ATTEMPTS) return answer;
    }
  }

  /** The job that it was given; undefined for none. */
  async take(): Promise<RunnerJob | undefined> {
    const body = JSON.stringify({ token: "glrt-secret", system_id: "s_1818892f902b", info: {} });
    const path = "/api/v4/jobs/request";
    const headers = ["Accept-Encoding", "gzip", "Content-Type", "application/json"];
    const answer = await this.#try("POST", path, body, headers);
    if (answer.status !== 201) return undefined;
    const [, id = ""] = /"id":([0-9]+)/.exec(gunzipSync(answer.body).toString()) ?? [];
    return new RunnerJob(id, (method, tail, content, more) =>
      this.#try(method, `/api/v4/jobs/${id}${tail}`, content, more),
    );
  }
}

type Send = (method: string, tail: string, body: string, headers: string[]) => Promise<Answer>;

export class RunnerJob {
  readonly id: string;
  /** Told to stop, or that it must not begin. */
  aborted = false;
  /** What was answered to each of its requests, in order. */
  readonly answers: Answer[] = [];
  readonly #send: Send;
  #log = "";
  #sent = 0;

  constructor(id: string, send: Send) {
    this.id = id;
    this.#send = send;
  }

  /** The first PUT, and each by which the runner only asks: `PUT state=running`. */
  async touch(): Promise<Answer> {
    const answer = await this.#put("running");
    this.#heed(answer);
    return answer;
  }

  write(text: string): void {
    this.#log += text;
  }

  /** Sends what was written since; nothing where there is nothing. */
  async patch(): Promise<Answer | undefined> {
    const content = this.#log.slice(this.#sent);
    if (content === "") return undefined;
    const range = `${this.#sent}-${this.#sent + content.length - 1}`;
    const headers = ["JOB-TOKEN", TOKEN, "Content-Range", range, "Content-Type", "text/plain"];
    const answer = await this.#send("PATCH", "/trace?debug_trace=false", content, headers);
    this.answers.push(answer);
    if (this.#heed(answer)) return answer;
    if (answer.status === 202) this.#sent += content.length;
    if (answer.status === 416) {
      const range416 = answer.headers[answer.headers.indexOf("Range") + 1] ?? "0-0";
      this.#sent = Number(range416.split("-")[1]);
    }
    return answer;
  }

  /** The last of its log, and then the last word, until GitLab has taken both. */
  async finish(state: "success" | "failed", tries = 10): Promise<number> {
    for (let attempt = 1; attempt <= tries; attempt++) {
      while (this.#sent !== this.#log.length) {
        const patched = await this.patch();
        if (patched?.status !== 202 && patched?.status !== 416) break;
      }
      const { status, jobStatus } = await this.#put(state);
      if ([200, 403, 404].includes(status) || jobStatus === "failed") return status;
    }
    return 0;
  }

  async #put(state: string): Promise<Answer> {
    const body = JSON.stringify({
      info: { name: "gitlab-runner" },
      token: TOKEN,
      state,
      output: {},
    });
    const headers = ["JOB-TOKEN", TOKEN, "Content-Type", "application/json"];
    const answer = await this.#send("PUT", "", body, headers);
    this.answers.push(answer);
    return answer;
  }

  #heed({ status, jobStatus }: Answer): boolean {
    const aborts = jobStatus === "failed" || jobStatus === "canceled" || status === 403;
    this.aborted ||= aborts;
    return aborts;
  }
}
