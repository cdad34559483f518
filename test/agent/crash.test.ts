/** What ends an agent in the middle: kill -9, a limit on file sizes, a full disk. */
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { testOnSmallDisk } from "../small-disk.ts";
import { FILE, Host } from "./host.ts";
import { agentProcess, runAgent } from "./process.ts";
import { UNIQUE_ID, usageLine } from "./records.ts";
import { FakeService } from "./service.ts";

const OTHER = { uniqueId: "another-instance", log: "f".repeat(32) };
const COUNT = 1_600;

let host: Host;
let services: [FakeService, FakeService];
let kids: string[];

beforeEach(async () => {
  host = new Host();
  services = [new FakeService(), Object.assign(new FakeService(), OTHER)];
  const [url, otherUrl] = [await services[0].start(), await services[1].start()];
  kids = [await host.claim(url), await host.claim(otherUrl, "other", OTHER.log)];
  const lines = Array.from({ length: COUNT }, (_, i) =>
    i % 10 === 9 ? "torn" : usageLine({ uniqueId: i % 4 === 0 ? OTHER.uniqueId : UNIQUE_ID }),
  );
  host.write(lines.slice(0, COUNT / 2).join("\n"), FILE);
  host.write(lines.slice(COUNT / 2).join("\n"), "usage-log-later.json");
});

afterEach(async () => {
  for (const service of services) await service.stop();
  rmSync(host.root, { recursive: true });
});

/** Each job is on its log once, by counters 1, 2, 3 … without a gap. */
function expectAllOnce(): void {
  const records = services.map((service, i) => {
    const counters = service.counters(kids[i] ?? "");
    expect(counters).toEqual(Array.from({ length: counters.length }, (_, k) => k + 1));
    expect(new Set(service.reports.map(({ job }) => job.id)).size).toBe(counters.length);
    expect(service.reports).toHaveLength(counters.length);
    return counters.length;
  });
  expect(records).toEqual([1_040, 400]);
}

test("killed with -9 at random moments and run again, the agent sends every line once, without a gap", async () => {
  let kills = 0;
  for (let alive = true; alive; ) {
    const child = agentProcess(["import", host.logs, "--state", host.state, "--batch", "20"]);
    // Moments of the work itself: the process takes long to start, and the work is short.
    let moments = Math.floor(Math.random() * 60);
    const kill = () => {
      if (moments-- === 0) child.kill("SIGKILL");
    };
    child.stderr.on("data", kill);
    for (const service of services) service.server.on("request", kill);
    const [status] = await once(child, "close");
    for (const service of services)
      service.server.removeAllListeners("request").on("request", service.serve);
    alive = status === null;
    if (alive) kills += 1;
  }
  expect(kills).toBeGreaterThan(0);
  expectAllOnce();
  expect(services.map(({ attestations }) => attestations.at(-1)?.malformed)).toEqual([
    "160",
    "160",
  ]);
});

describe("a write that finds no room ends with one clear line, and the next run goes on", () => {
  test("under a limit on file sizes", async () => {
    const limited = await runAgent(["import", host.logs, "--state", host.state], {
      limit: ["prlimit", "--fsize=200000"],
    });
    expect(limited.status).toBe(1);
    expect(limited.stderr).toMatch(/There is no room left to write .*\(EFBIG\)\. Nothing is lost/);
    expect(limited.stderr).not.toContain("    at ");
    expect((await runAgent(["import", host.logs, "--state", host.state])).status).toBe(0);
    expectAllOnce();
  });

  testOnSmallDisk("on a full disk", async () => {
    const disk = join(host.root, "disk");
    mkdirSync(disk);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=600k", "tmpfs", disk]);
    try {
      execFileSync("cp", ["-a", host.state, disk]);
      const state = join(disk, "state");
      const full = await runAgent(["import", host.logs, "--state", state]);
      expect(full.status).toBe(1);
      expect(full.stderr).toMatch(/There is no room left to write .*\(ENOSPC\)\. Nothing is lost/);
      execFileSync("mount", ["-o", "remount,size=64m", disk]);
      expect((await runAgent(["import", host.logs, "--state", state])).status).toBe(0);
      expectAllOnce();
    } finally {
      execFileSync("umount", [disk]);
    }
  });
});
