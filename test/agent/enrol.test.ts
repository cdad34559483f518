import { createHash } from "node:crypto";
import { chmodSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { beginRotation, finishRotation } from "../../src/agent/rotate.ts";
import { AgentState } from "../../src/agent/state.ts";
import { Host } from "./host.ts";
import { RUNNER, UNIQUE_ID, usageLine } from "./records.ts";
import { FakeService, LOG } from "./service.ts";

let host: Host;
let service: FakeService;
let url: string;

beforeEach(async () => {
  host = new Host();
  service = new FakeService();
  url = await service.start();
});

afterEach(async () => {
  await service.stop();
  rmSync(host.root, { recursive: true });
});

const keyFiles = () => readdirSync(join(host.state, "keys"));
const lines = (count: number) => Array.from({ length: count }, () => `${usageLine()}\n`).join("");

const begin = () =>
  host.withState((state) => {
    const [enrolment] = state.settings.enrolments;
    if (enrolment === undefined) throw new Error("not enrolled");
    return beginRotation(state, enrolment, Date.now());
  });

function refuse(status: number, code: string) {
  service.misbehaviours.push((_, response) => {
    response.writeHead(status, { "content-type": "application/problem+json" });
    response.end(JSON.stringify({ code, title: "A title" }));
    return true;
  });
}

describe("claim", () => {
  test("keeps a key that only its owner reads, and what it speaks for", async () => {
    const kid = await host.claim(url);
    expect(keyFiles()).toEqual([`${kid}.json`]);
    expect(statSync(join(host.state, "keys", `${kid}.json`)).mode & 0o777).toBe(0o600);
    expect(statSync(host.state).mode & 0o777).toBe(0o700);
    await host.withState(({ settings }) => {
      expect(settings.enrolments).toEqual([
        {
          unique_id: UNIQUE_ID,
          log: LOG,
          server: url,
          platform: "dotcom",
          kid,
          runners: [RUNNER],
          token_sha256: createHash("sha256").update("token").digest("base64"),
        },
      ]);
      expect(settings.claims).toEqual([]);
    });
  });

  test("that was refused, or lost its answer, sends the same bytes again", async () => {
    refuse(404, "unknown-token");
    await expect(host.claim(url)).rejects.toMatchObject({
      code: "refused",
      message: expect.stringContaining("refused the claim: 404, unknown-token (A title)"),
    });
    const [file] = keyFiles();
    service.misbehaviours.push((_, response) => {
      response.end = () => response.destroy();
      return false;
    });
    const kid = await host.claim(url);
    expect([`${kid}.json`]).toEqual([file]);
    expect(service.keys.size).toBe(1);
  });

  test("of a token that was claimed is answered from the state", async () => {
    const kid = await host.claim(url);
    service.misbehaviours.push(() => {
      throw new Error("nobody should ask");
    });
    expect(await host.claim(url)).toBe(kid);
  });

  test("of a second token for the same instance: each runner's jobs go by its own key", async () => {
    const first = await host.claim(url);
    service.claimRunners = ["second-runner"];
    const second = await host.claim(url, "second");
    host.write(`${lines(2)}${usageLine({ runner: "second-runner" })}\n${lines(1)}`);
    await host.import();
    expect([first, second].map((kid) => service.counters(kid))).toEqual([[1, 2, 3], [1]]);
    expect(service.attestations.map(({ counter }) => counter)).toEqual(["3", "1"]);
  });
});

describe("rotation", () => {
  test("ends the old key at its last counter, and the new one begins at 1", async () => {
    const old = await host.claim(url);
    host.write(lines(3));
    await host.import();
    const pending = await begin();
    await host.withState((state) => finishRotation(state, pending, host.client(url)));
    const { successor } = pending;
    host.write(lines(2));
    await host.import();
    expect(service.counters(old)).toEqual([1, 2, 3]);
    expect(service.counters(successor)).toEqual([1, 2]);
    await host.withState(({ settings }) => {
      expect(settings.enrolments.map(({ kid }) => kid)).toEqual([successor]);
      expect(settings.rotations).toEqual([]);
    });
  });

  test("is begun once, however often it is asked for", async () => {
    await host.claim(url);
    const [first, second] = [await begin(), await begin()];
    expect(second).toEqual(first);
    expect(keyFiles()).toHaveLength(2);
  });

  test("whose answer was lost is finished by the next import, before anything is signed", async () => {
    const old = await host.claim(url);
    host.write(lines(3));
    const { successor } = await begin();
    service.misbehaviours.push((_, response) => {
      response.end = () => response.destroy();
      return false;
    });
    await host.import();
    expect(service.counters(old)).toEqual([]);
    expect(service.counters(successor)).toEqual([1, 2, 3]);
  });

  test("that is refused leaves the old key silent, and says why", async () => {
    await host.claim(url);
    host.write(lines(1));
    await begin();
    refuse(409, "key-has-ended");
    await expect(host.import()).rejects.toThrow("refused the rotation: 409, key-has-ended");
    expect(service.reports).toEqual([]);
  });
});

describe("a state folder that is not as the agent left it", () => {
  test("with a key that others can read signs nothing", async () => {
    const kid = await host.claim(url);
    chmodSync(join(host.state, "keys", `${kid}.json`), 0o644);
    host.write(lines(1));
    await expect(host.import()).rejects.toThrow(/can be read by others/);
  });

  test("with another key under the name signs nothing", async () => {
    const kid = await host.claim(url);
    const other = await host.withState((state) => state.createKey().kid);
    const path = (name: string) => join(host.state, "keys", `${name}.json`);
    writeFileSync(path(kid), readFileSync(path(other)));
    host.write(lines(1));
    await expect(host.import()).rejects.toThrow(/holds another key/);
  });

  test("with settings that are none is named, and let go again", () => {
    new AgentState(host.state).close();
    writeFileSync(join(host.state, "agent.json"), "{}");
    for (const _ of [1, 2]) expect(() => new AgentState(host.state)).toThrow(/not this agent's/);
  });

  test("with what a crash left of a file is tidied", async () => {
    await host.claim(url);
    writeFileSync(join(host.state, "keys", "x.json.1.tmp"), "{");
    writeFileSync(join(host.state, "agent.json.1.tmp"), "{");
    new AgentState(host.state).close();
    expect(keyFiles()).toHaveLength(1);
    expect(readdirSync(host.state)).not.toContain("agent.json.1.tmp");
  });
});
