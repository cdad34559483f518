/** How the published usage comes to a service: as an agent brings it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import {
  AgentState,
  Client,
  claim,
  importFolder,
  SURROUNDINGS,
  type Summary,
} from "../../src/agent/index.ts";
import type { Service } from "../../src/command/service.ts";
import type { InstanceSetUp } from "../../src/command/setup.ts";

export interface Delivery {
  /** A folder of usage logs. */
  folder: string;
  /** The agent's own folder; it claims the enrolments that it has not claimed. */
  state: string;
}

/** Claims, imports and attests. @throws AgentError */
export async function deliver(
  { url }: Pick<Service, "url">,
  instances: readonly InstanceSetUp[],
  { folder, state: own }: Delivery,
): Promise<Summary> {
  const state = new AgentState(own);
  try {
    const client = new Client({ server: url, surroundings: SURROUNDINGS });
    for (const { log, tokens } of instances) {
      for (const token of tokens) await claim(state, client, { log, token });
    }
    return await importFolder({ state, folder });
  } finally {
    state.close();
  }
}

/** @throws Error when the file is not there: what could not be looked at must not pass */
export async function readPublished(folder: string, name: string): Promise<unknown> {
  return JSON.parse(await readFile(join(folder, name), "utf8"));
}
