import { spawnSync } from "node:child_process";
import { mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Story } from "../../src/command/story/facts.ts";
import { page } from "../../src/command/story/page.ts";
import { run } from "./process.ts";

/** Told in a fraction of that where nothing else runs. */
const TELLING = { timeout: 240_000 };

let root: string;

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), "minutebook-story-"));
});

afterAll(() => rm(root, { recursive: true }));

async function tell(name: string, environment: Record<string, string> = {}): Promise<Story> {
  const args = ["demo", "--once", "--json", "--data", join(root, name)];
  const { status, stdout, stderr } = await run(args, environment);
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return JSON.parse(stdout) as Story;
}

/** All of the PATH that the story needs, and no redis-server. */
async function pathWithoutRedis(): Promise<string> {
  const folder = await mkdtemp(join(root, "bin-"));
  for (const program of ["id", "chmod", "node"]) {
    const { stdout } = spawnSync("which", [program], { encoding: "utf8" });
    await symlink(stdout.trim(), join(folder, program));
  }
  return folder;
}

const DECIDED = {
  namespace: "1004",
  started: { allowed: true, job_status: "running", remaining_minutes: "10.0000" },
  used: { allowed: true, job_status: "running", minutes: "10", remaining_minutes: "0.0000" },
  refused: { allowed: false, job_status: "failed", remaining_minutes: "0.0000" },
  stopped: { allowed: false, job_status: "failed", minutes: "11", remaining_minutes: "-1.0000" },
  reported: { used_minutes: "11.0000", live_minutes: "0.0000", remaining_minutes: "-1.0000" },
};

test.concurrent(
  "npm start tells all of it: one job allowed, one refused, one stopped, and both verifiers content",
  TELLING,
  async ({ expect }) => {
    const story = await tell("redis");
    expect(story.quota).toMatchObject({ ...DECIDED, source: "redis" });
    expect(story.crash).toMatchObject({ reports: "200", accepted: "200", duplicates: "200" });
    expect(story.crash.after).toBe(story.crash.before);
    expect(story.receipts.broken).toBe("0");
    const { adjusted, broken, closed } = story.control;
    expect(Number(adjusted.before) - Number(adjusted.after)).toBeCloseTo(1, 9);
    expect(broken).toMatchObject({ code: "missing-report", refused: "month-not-ready" });
    expect(closed).toMatchObject({ anchor: "UNANCHORED", jobs: "10" });
    const { archive, database, proof } = story.verified;
    for (const verdict of [archive, database, proof]) expect(verdict).toMatch(/^exit 0, /);
    for (const verdict of [story.tampered.archive, story.tampered.database]) {
      expect(verdict).toMatch(/^exit 1, /);
    }
    expect(page(story, true).trimEnd().split("\n").length).toBeLessThanOrEqual(60);
  },
);

test.concurrent(
  "without a redis-server the same is decided, and it is said where",
  TELLING,
  async ({ expect }) => {
    const story = await tell("none", { PATH: await pathWithoutRedis() });
    expect(story.quota).toMatchObject({ ...DECIDED, source: "process" });
    expect(page(story, false)).toContain("what is live is kept in the service's own memory");
  },
);
