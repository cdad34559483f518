/** A runner's host for one test: a state folder, a folder of usage logs, a clock and no waiting. */
import { appendFileSync, mkdirSync, mkdtempSync } from "node:fs";
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
import { LOG } from "./service.ts";

export const FILE = "usage-log-2026-11-28-23-59-59.123.json";

export class Host {
  readonly root = mkdtempSync(join(tmpdir(), "minutebook-agent-"));
  readonly state = join(this.root, "state");
  readonly logs = join(this.root, "logs");
  readonly pauses: number[] = [];
  readonly notices: string[] = [];
  readonly surroundings = {
    ...SURROUNDINGS,
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

  async claim(server: string, token = "token", log = LOG): Promise<string> {
    const { kid } = await this.withState((state) =>
      claim(state, this.client(server), { log, token }),
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

  async withState<T>(act: (state: AgentState) => T | Promise<T>): Promise<T> {
    const state = new AgentState(this.state);
    try {
      return await act(state);
    } finally {
      state.close();
    }
  }
}
