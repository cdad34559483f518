/** What the database itself shows a viewer, whatever the query forgets to ask for. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { refresh } from "../../src/flow/usage/fold.ts";
import { readAs, type Viewer } from "../../src/store/viewer.ts";
import { reported } from "../flow/door.ts";
import { ask, type House, newLog, openHouse, sealedSize, tokenOf } from "../http/house.ts";

let house: House;
let mine: string;
let other: string;

beforeAll(async () => {
  house = await openHouse();
  mine = (await newLog(house, "mine", 1)).log;
  other = (await newLog(house, "other", 2)).log;
  for (const [seed, log] of [
    [1, mine],
    [2, other],
  ] as const) {
    for (const namespace of ["7", "8"]) {
      const job = { id: namespace, root_namespace_id: namespace };
      const jose = reported(seed, log, { counter: namespace, job });
      expect((await ask(house, "POST /v1/reports", { jose })).status).toBe(201);
    }
    await sealedSize(house, log);
  }
  const { reader, writer } = house.database;
  // The house refreshes too, and whoever comes second is not waited for.
  const isFolded = async (): Promise<boolean> => {
    await refresh({ sql: writer, clock: house.clock });
    return (await reader`select from ci_gitlab_hosted_runner_monthly_usages`).length === 4;
  };
  await vi.waitUntil(isFolded, { timeout: 20_000 });
  await writer`
    insert into quota_stops
    select log, namespace, 1, 'start', now(), now(), 1, 'p', 'r', 'redis', 1, 0, 0, '{}'
    from unnest(${[mine, other]}::text[]) as log, unnest(array[7, 8]) as namespace`;
  await writer`
    insert into notifications
    select log, namespace, 1, log || namespace, now(), '{}', 'pending', 0, now()
    from unnest(${[mine, other]}::text[]) as log, unnest(array[7, 8]) as namespace`;
  await writer`
    insert into adjustments
    select log, 1, namespace, namespace, 1, '2026-01-01', '2026-01-01', -1
    from unnest(${[mine, other]}::text[]) as log, unnest(array[7, 8]) as namespace`;
});
afterAll(() => house.close());

/** Everything of it, with no filter at all, by whoever reads as this viewer. */
async function all(table: string, namespace: string, viewer: Viewer): Promise<unknown[]> {
  return await readAs(house.database.reader, viewer, async (sql) => {
    const rows = await sql.unsafe(
      `select distinct log, ${namespace}::text as namespace from ${table} order by 1, 2`,
    );
    return [...rows].map((row) => [row["log"], row["namespace"]]);
  });
}

const OF_NAMESPACES = [
  ["usage_buckets", "namespace_id"],
  ["ci_namespace_monthly_usages", "namespace_id"],
  ["ci_project_monthly_usages", "namespace_id"],
  ["ci_gitlab_hosted_runner_monthly_usages", "root_namespace_id"],
  ["adjustments", "namespace_id"],
  ["notifications", "namespace_id"],
  ["quota_stops", "namespace_id"],
  ["jobs", "job_id"],
] as const;

test.each(OF_NAMESPACES)(
  "a viewer who asks for all of %s gets their own namespaces, and no other tenant's rows",
  async (table, namespace) => {
    const owned = { log: mine, namespaces: [7n] };
    expect(await all(table, namespace, owned)).toEqual([[mine, "7"]]);
    const whole = await all(table, namespace, { log: mine, namespaces: "*" });
    expect(whole).toEqual([
      [mine, "7"],
      [mine, "8"],
    ]);
    expect(await all(table, namespace, { log: mine, namespaces: [] })).toEqual([]);
    expect(await all(table, namespace, { log: "f".repeat(32), namespaces: "*" })).toEqual([]);
    const there = await house.database.reader.unsafe(`select distinct log from ${table}`);
    expect(there.length, "the others' rows are there").toBe(2);
  },
);

test("of entries a viewer has their own builds and limits, and the cards that rate them", async () => {
  const kinds = (viewer: Viewer) =>
    readAs(house.database.reader, viewer, async (sql) => {
      const rows = await sql<{ log: string; kind: string; namespace: string | null }[]>`
        select distinct log, kind, namespace_id::text as namespace from entries order by 2, 3`;
      return rows.map(({ log, kind, namespace }) => [log, kind, namespace]);
    });
  expect(await kinds({ log: mine, namespaces: [8n] })).toEqual([
    [mine, "log", null],
    [mine, "rate_card", null],
    [mine, "usage", "8"],
  ]);
});

test.each(["heads", "seals", "watermarks"])(
  "of %s a viewer sees their log's row",
  async (table) => {
    expect(await all(table, "size", { log: mine, namespaces: [7n] })).toHaveLength(1);
  },
);

test.each([
  "keys",
  "reports",
  "access_log",
  "principals",
  "open_namespace_monthly_usages",
  "public.ci_namespace_monthly_usages",
  "public.heads",
  "accounts",
])("%s is nothing that a viewer may read at all", async (table) => {
  await expect(all(table, "1", { log: mine, namespaces: "*" })).rejects.toThrow(
    "permission denied",
  );
});

test("who has said nothing of log and namespaces sees nothing, and reads on as before afterwards", async () => {
  const { reader } = house.database;
  await reader.begin(async (tx) => {
    await tx`set local role minutebook_viewer`;
    expect(await tx`select from entries`).toHaveLength(0);
    expect(await tx`select from usage_buckets`).toHaveLength(0);
  });
  await reader.begin(async (tx) => {
    await tx`select set_config('minutebook.log', ${mine}, true)`;
    await tx`set local role minutebook_viewer`;
    expect(await tx`select from usage_buckets`).toHaveLength(0);
  });
  expect((await reader`select from usage_buckets`).length).toBe(4);
});

test("nobody is the viewer without becoming it, and it signs in nowhere", async () => {
  const [role] = await house.database.superuser`
    select rolcanlogin, rolbypassrls, rolsuper from pg_roles where rolname = 'minutebook_viewer'`;
  expect(role).toEqual({ rolcanlogin: false, rolbypassrls: false, rolsuper: false });
  const { auditor } = house.database;
  await expect(auditor`set role minutebook_viewer`).rejects.toThrow("permission denied");
});

test("usage, builds, stops and notifications are answered to a viewer through it, and to others as before", async () => {
  const { database } = house;
  const viewer = await tokenOf(["viewer"], { logs: [mine], namespaces: ["7"] });
  const auditor = await tokenOf(["auditor"]);
  const paths = [
    `/v1/usage?log=${mine}&group=namespace`,
    `/v1/usage?log=${mine}&fresh=true&group=runner`,
    `/v1/jobs/${mine}/7`,
    `/v1/quotas/${mine}/9/notifications`,
  ];
  const shown = await ask(house, `GET ${paths[0]}`, { token: viewer });
  expect(shown.json["rows"]).toHaveLength(1);
  for (const path of paths.slice(0, 3)) {
    expect((await ask(house, `GET ${path}`, { token: viewer })).status).toBe(200);
  }
  // Taken away from the viewer, and from nobody else.
  await database.owner`revoke usage on schema tenant from minutebook_viewer`;
  for (const path of paths.slice(0, 3)) {
    const token = viewer;
    expect((await ask(house, `GET ${path}`, { token })).status, path).toBe(500);
    expect((await ask(house, `GET ${path}`, { token: auditor })).status, path).toBe(200);
  }
  await database.owner`grant usage on schema tenant to minutebook_viewer`;
});
