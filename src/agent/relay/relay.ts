/** The relay: gitlab-runner talks to it as to GitLab, and heartbeats of what runs go to Minutebook. */
import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Surroundings } from "../client.ts";
import { AgentError, errnoOf } from "../failure.ts";
import { Account } from "../live/account.ts";
import { Heart } from "../live/heart.ts";
import { bootId, HEARTBEAT_MS, pulse, sinceBoot } from "../live/pulse.ts";
import { Bailiff, type Counts } from "./bailiff.ts";
import { Front } from "./front.ts";
import { Register, type RelayedJob } from "./register.ts";
import { Upstream } from "./upstream.ts";

export interface RelayOptions {
  /** The agent's state folder. What is the relay's lies in `live/` there, which the caller has locked. */
  folder: string;
  /** Port 0 is any that is free. */
  listen: { host: string; port: number };
  gitlab: URL;
  /** PEM, to listen by TLS. */
  tls?: { cert: string; key: string } | undefined;
  surroundings: Surroundings;
  /** No new connection from then on, and what is under way comes to its end. */
  signal: AbortSignal;
  /** Between two heartbeats. */
  intervalMs?: number | undefined;
  onNotice: (sentence: string) => void;
  onListening: (url: string) => void;
}

/** A runner waits no longer than this for Minutebook to let its job begin: then it begins. */
const BEGIN_MS = 2_000;
/** In beats: a `failed` that was not said again by then is no longer known. */
const STOP_STANDS = 1.5;

export class Relay {
  readonly #options: RelayOptions;
  readonly #intervalMs: number;
  readonly #upstream: Upstream;
  readonly #register: Register;
  readonly #heart: Heart;
  readonly #account: Account;
  readonly #bailiff: Bailiff;

  constructor(options: RelayOptions) {
    const { folder, gitlab, surroundings, signal, onNotice, intervalMs = HEARTBEAT_MS } = options;
    this.#options = options;
    this.#intervalMs = intervalMs;
    this.#upstream = new Upstream(gitlab);
    this.#heart = new Heart({ folder, surroundings, signal });
    this.#account = new Account(onNotice);
    this.#register = new Register({
      folder: join(folder, "live", "jobs"),
      boot: bootId(),
      clock: sinceBoot,
      onNotice,
    });
    this.#bailiff = new Bailiff({
      register: this.#register,
      upstream: this.#upstream,
      mustNotBegin: (job) => this.#mustNotBegin(job),
      mustStop: ({ stopSince }) =>
        stopSince !== undefined && sinceBoot() - stopSince <= STOP_STANDS * intervalMs,
      onNotice,
    });
  }

  /**
   * Until the signal, and until what was under way then has ended.
   * @throws AgentError `in-use`, `unreadable`, where it cannot listen
   */
  async run(): Promise<Counts> {
    const { signal, surroundings, listen, tls, onListening } = this.#options;
    const front = new Front({
      upstream: this.#upstream,
      watch: (request) => this.#bailiff.watch(request),
      tls,
    });
    const { server } = front;
    await listenOn(server, listen);
    const { port } = server.address() as AddressInfo;
    onListening(`${tls === undefined ? "http" : "https"}://${urlHost(listen.host)}:${port}`);
    const closed = once(server, "close");
    const { sleep } = surroundings;
    await pulse({ intervalMs: this.#intervalMs, signal, sleep }, () => this.#beat());
    front.end();
    await closed;
    this.#upstream.close();
    return this.#bailiff.counts;
  }

  /** What goes wrong here is said, and everything passes until the next beat. */
  async #beat(): Promise<void> {
    const { signal } = this.#options;
    const { known, unknown } = this.#register.running();
    let stop: ReadonlySet<unknown> = new Set();
    try {
      const beat = await this.#heart.beat(known, this.#intervalMs);
      this.#account.beat(beat, unknown);
      ({ stop } = beat);
    } catch (error) {
      signal.throwIfAborted();
      this.#account.sentences([error instanceof Error ? error.message : String(error)]);
    }
    const now = sinceBoot();
    for (const said of known) said.of.stopSince = stop.has(said) ? now : undefined;
  }

  /** Never rejects: whatever goes wrong here, the job begins, and the next beat says what it is. */
  async #mustNotBegin(job: RelayedJob): Promise<boolean> {
    try {
      const { stop } = await this.#heart.beat(this.#register.said(job), BEGIN_MS);
      return stop.size > 0;
    } catch {
      return false;
    }
  }
}

async function listenOn(server: Server, { host, port }: RelayOptions["listen"]): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    const inUse = errnoOf(cause) === "EADDRINUSE";
    const message = `${urlHost(host)}:${port} cannot be listened on (${errnoOf(cause)}).`;
    throw new AgentError(inUse ? "in-use" : "unreadable", message, { cause });
  }
}

function urlHost(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
