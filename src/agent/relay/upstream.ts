/** GitLab's side of the relay. */
import { Agent, type ClientRequest, request } from "node:http";
import { request as requestTls, Agent as TlsAgent } from "node:https";
import { type RawHeaders, withHeader } from "./headers.ts";

/** Not a byte either way: longer than any long poll, or than GitLab's last look at an upload. */
const SILENT_MS = 10 * 60_000;

export class Upstream {
  readonly #target: URL;
  readonly #agent: Agent;
  readonly #silentMs: number;

  /**
   * A connection for each request, which it closes. On one that jobs and runners share, whatever one of
   * them makes GitLab read or say too much is the next one's request or answer, with its token; and one
   * that GitLab is just closing would be a 502. TLS sessions are resumed.
   *
   * @param target GitLab's address; its path, if any, comes before that of each request
   */
  constructor(target: URL, silentMs = SILENT_MS) {
    this.#target = target;
    this.#silentMs = silentMs;
    const options = { keepAlive: false };
    this.#agent = target.protocol === "https:" ? new TlsAgent(options) : new Agent(options);
  }

  /** @param path in origin form (RFC 9112 §3.2.1) */
  open(method: string, path: string, headers: RawHeaders): ClientRequest {
    const { protocol, hostname, port, pathname, host } = this.#target;
    const outgoing = (protocol === "https:" ? requestTls : request)({
      agent: this.#agent,
      hostname: hostname.replace(/^\[|\]$/g, ""),
      port,
      method,
      path: `${pathname.replace(/\/$/, "")}${path}`,
      headers: withHeader(headers, "Host", host),
      insecureHTTPParser: false, // whatever NODE_OPTIONS say
      timeout: this.#silentMs,
    });
    outgoing.maxHeadersCount = 0; // none is dropped unseen; their bytes are bounded
    outgoing.on("timeout", () => outgoing.destroy());
    return outgoing;
  }

  close(): void {
    this.#agent.destroy();
  }
}
