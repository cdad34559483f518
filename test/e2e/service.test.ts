import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { instantText } from "../../src/core/unit.ts";
import { entriesOf, ofKind, reported } from "../flow/door.ts";
import { ask, newAgent, newLogOn } from "../http/house.ts";
import { openSite, refusal, type Serving, type Site, serve } from "./process.ts";

let site: Site;

beforeAll(async () => {
  site = await openSite();
});

afterAll(() => site.remove());

interface Answer {
  code: string;
  index?: string;
}

/** Undefined when nobody answered, or the answer was to come again. */
async function send({ url }: Serving, jws: string): Promise<Answer | undefined> {
  try {
    const headers = { "content-type": "application/jose" };
    const response = await fetch(`${url}/v1/reports`, { method: "POST", headers, body: jws });
    return response.status === 503 ? undefined : ((await response.json()) as Answer);
  } catch {
    return undefined;
  }
}

const FINISHED = instantText(Date.now() - 60_000);

function reports(seed: number, log: string, count: number): string[] {
  const usage = { finished_at: FINISHED };
  return Array.from({ length: count }, (_, i) => {
    const number = String(i + 1);
    return reported(seed, log, { counter: number, job: { id: number }, usage });
  });
}

test("processes that are stopped and killed amid traffic lose nothing that was accepted", async () => {
  const { token, database } = site;
  const first = await serve(site.environment);
  const second = await serve(site.environment);
  const log = await newLogOn(first, token, "amid traffic");
  await newAgent(first, log, 1, {}, token);
  const texts = reports(1, log, 200);
  const answered = new Map<string, Answer>();
  const left = texts.values();
  const lanes = Array.from({ length: 16 }, async (_, lane) => {
    const own = lane % 2 === 0 ? first : second;
    for (const jws of left) {
      const answer = await send(own, jws);
      if (answer !== undefined) answered.set(jws, answer);
    }
  });
  await expect.poll(() => answered.size, { timeout: 30_000 }).toBeGreaterThan(40);
  const [stopped, killed] = await Promise.all([first.end("SIGTERM"), second.end("SIGKILL")]);
  expect([stopped, killed]).toEqual([0, "SIGKILL"]);
  await Promise.all(lanes);

  const third = await serve(site.environment);
  const again = await ask(third, "POST /v1/reports", { json: { reports: texts } });
  const results = again.json["results"] as Answer[];
  expect(new Set(results.map(({ code }) => code))).toEqual(new Set(["accepted"]));
  texts.forEach((jws, i) => {
    const before = answered.get(jws);
    if (before !== undefined) expect(results[i]?.index).toBe(before.index);
  });
  const used = ofKind(await entriesOf(database.reader, log), "usage");
  expect(used.map(({ body }) => body.jws).sort()).toEqual([...texts].sort());
  expect(await third.end("SIGINT")).toBe(0);
  const [seal] = await database.reader`select size from seals where log = ${log}`;
  const [head] = await database.reader`select size from heads where log = ${log}`;
  const [watermark] = await database.reader`select size from watermarks where log = ${log}`;
  expect([seal?.["size"], watermark?.["size"]]).toEqual([head?.["size"], head?.["size"]]);
});

test("a service says on each log, once, which version writes there", async () => {
  const { database, environment, token } = site;
  const versions = async (log: string): Promise<string[]> =>
    ofKind(await entriesOf(database.reader, log), "service").map(({ body }) => body.version);
  const logs: string[] = [];
  // Logs are gone through oldest first: when the younger one has its entry, the older one was looked at.
  for (const unique_id of ["announced first", "announced second"]) {
    const maker = await serve(environment);
    logs.push(await newLogOn(maker, token, unique_id));
    await maker.end("SIGTERM");
    const announcer = await serve(environment);
    await expect.poll(() => versions(logs.at(-1) ?? ""), { timeout: 20_000 }).toEqual(["0.1.0"]);
    await announcer.end("SIGTERM");
  }
  expect(await versions(logs[0] ?? "")).toEqual(["0.1.0"]);
});

test("a production service without Redis says, once it serves, that there can be but one", async () => {
  const serving = await serve(site.environment);
  await expect.poll(serving.errors, { timeout: 20_000 }).toContain("no Redis is configured");
  await serving.end("SIGTERM");
});

test("a service whose database takes no connections any more ends on a signal", async () => {
  const serving = await serve(site.environment);
  const { superuser } = site.database;
  const [row] = await superuser<{ name: string }[]>`select current_database() as name`;
  const database = superuser(row?.name ?? "");
  await superuser`alter database ${database} connection limit 0`;
  await superuser`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and application_name like 'minutebook-%'
  `;
  try {
    expect(await serving.end("SIGTERM")).toBe(0);
  } finally {
    await superuser`alter database ${database} connection limit -1`;
  }
});

test("a port that is taken is said in one line, and nothing is left running", async () => {
  const serving = await serve(site.environment);
  const { status, errors } = await refusal(site.environment, ["--port", new URL(serving.url).port]);
  expect(status).toBe(2);
  expect(errors.trim().split("\n")).toHaveLength(1);
  expect(errors).toContain("EADDRINUSE");
  await serving.end("SIGTERM");
});

test("a service that could undo its log does not start: neither as owner nor as superuser", async () => {
  for (const role of ["owner", "superuser"] as const) {
    const environment = { ...site.environment, DATABASE_URL: site.database.urls[role] };
    const { status, errors } = await refusal(environment);
    expect(status).toBe(2);
    expect(errors).toContain("unsafe-database-role");
    expect(errors).not.toContain(new URL(site.database.urls[role]).password);
  }
});

test("a key file that others can read is refused", async () => {
  const file = join(site.folder, "log.pem");
  await chmod(file, 0o644);
  const { status, errors } = await refusal(site.environment);
  await chmod(file, 0o600);
  expect(status).toBe(2);
  expect(errors).toContain("chmod 600");
});

test("production has no embedded half and no issuer of its own", async () => {
  for (const mode of [{ MINUTEBOOK_MODE: "production" }, { NODE_ENV: "production" }]) {
    const { status, errors } = await refusal({ ...mode });
    expect(status).toBe(2);
    expect(errors).toContain("production needs DATABASE_URL");
  }
  const { ISSUERS_FILE: _, ...without } = site.environment;
  const { status, errors } = await refusal({ ...without, MINUTEBOOK_MODE: "development" });
  expect([status, errors.trim()]).toEqual([
    2,
    "invalid-configuration: set these too, or none of them: ISSUERS_FILE",
  ]);
});
