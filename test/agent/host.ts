/** A runner's host for one test: a state folder, a folder of usage logs, a clock and no waiting. */
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  AgentState,
  Client,
  claim,
  type ImportOptions,
  importFolder,
  SURROUNDINGS,
  type Summary,
} from "../../src/agent/index.ts";
import { type Account, check } from "../../src/agent/receipts.ts";
import type { Trust } from "../../src/agent/trust.ts";
import { usageLine } from "./records.ts";
import { LOG } from "./service.ts";

export const FILE = "usage-log-2026-11-28-23-59-59.123.json";

export class Host {
  readonly root = mkdtempSync(join(tmpdir(), "minutebook-agent-"));
  readonly state = join(this.root, "state");
  readonly logs = join(this.root, "logs");
  readonly pauses: number[] = [];
  readonly notices: string[] = [];
  /** How far this host's clock is ahead, in milliseconds. */
  ahead = 0;
  readonly surroundings = {
    ...SURROUNDINGS,
    now: () => Date.now() + this.ahead,
    random: () => 1 - Number.EPSILON,
    sleep: async (ms: number, signal: AbortSignal | undefined) => {
      this.pauses.push(ms);
      signal?.throwIfAborted();
    },
  };

  constructor() {
    mkdirSync(this.logs);
  }

  client(server: string): Client {
    const { surroundings } = this;
    return new Client({ server, surroundings });
  }

  async claim(server: string, token = "token", log = LOG, pinned?: Trust): Promise<string> {
    const { kid } = await this.withState((state) =>
      claim(state, this.client(server), { log, token, pinned }),
    );
    return kid;
  }

  write(text: string, file = FILE): void {
    appendFileSync(join(this.logs, file), text);
  }

  import(options: Partial<ImportOptions> = {}): Promise<Summary> {
    return this.withState((state) =>
      importFolder({
        state,
        folder: this.logs,
        surroundings: this.surroundings,
        onNotice: (notice) => this.notices.push(notice),
        ...options,
      }),
    );
  }

  /** Signs and sends so many reports, in one request. */
  async send(count: number): Promise<void> {
    this.write(Array.from({ length: count }, () => `${usageLine()}\n`).join(""));
    await this.import();
  }

  /** As `agent receipts --check`. */
  check(log = LOG): Promise<Account> {
    return this.withState((state) => {
      const server = state.settings.enrolments.find((enrolment) => enrolment.log === log)?.server;
      const client = this.client(server ?? "");
      return check(state, log, client, { batch: 100, onProgress: () => undefined });
    });
  }

  evidence(): { reason: string; [member: string]: unknown }[] {
    const folder = join(this.state, "evidence");
    return readdirSync(folder).map((name) => JSON.parse(readFileSync(join(folder, name), "utf8")));
  }

  async withState<T>(act: (state: AgentState) => T | Promise<T>): Promise<T> {
    const state = new AgentState(this.state);
    try {
      return await act(state);
    } finally {
      state.close();
    }
  }
}
