/** Who has used a log, who reviews that, and how access ends: on every process within seconds. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { Service } from "../../src/command/service.ts";
import { decodeEntry } from "../../src/core/entry.ts";
import { instantText } from "../../src/core/unit.ts";
import { overdueReviews } from "../../src/flow/access/review.ts";
import { minutebook } from "../command/terminal.ts";
import { CARD } from "../core/history.ts";
import {
  ask,
  beside,
  everybody,
  type House,
  newLog,
  newLogOn,
  openHouse,
  tokenOf,
} from "./house.ts";

let house: House;
let other: Service;
let log: string;
let token: string;

beforeAll(async () => {
  house = await openHouse();
  other = await beside(house);
  ({ log, token } = await newLog(house, "reviewed", 1));
});
afterAll(() => house.close());

interface Shown {
  id: string;
  subject: string;
  roles: string[];
  last_on: string;
  barred_at?: string;
}

async function register(of = log): Promise<Shown[]> {
  const { json } = await ask(house, `GET /v1/principals?log=${of}`, { token });
  return json["principals"] as Shown[];
}

/** A use of the log: the answer's status. */
async function holds(bearer: string, of = log): Promise<number> {
  return (await ask(house, `GET /v1/logs/${of}/holds`, { token: bearer })).status;
}

/** The id of whoever has these roles, after a use of the log. */
async function idOf(role: "auditor" | "finance" | "approver", scope = {}): Promise<string> {
  expect(await holds(await tokenOf([role], scope))).toBe(200);
  const found = (await register()).find(({ subject }) => subject === role);
  if (found === undefined) throw new Error("nobody registered");
  return found.id;
}

test("who uses a log is registered with issuer, roles and days, and who may not is not", async () => {
  const day = () => new Date().toISOString().slice(0, 10);
  const days = [day()];
  await idOf("auditor");
  days.push(day()); // another one, at midnight
  await holds(await tokenOf(["viewer"]));
  expect(await holds(await tokenOf(["finance"], { logs: ["f".repeat(32)] }))).toBe(404);
  const people = await register();
  expect(people).toContainEqual(
    expect.objectContaining({
      ...{ subject: "auditor", issuer: "minutebook-local", roles: ["auditor"] },
      ...{ last_on: expect.toBeOneOf(days), id: expect.stringMatching(/^p_/) },
    }),
  );
  expect(people.map(({ subject }) => subject)).not.toContain("finance");
});

test("a leaver is refused here at once, and soon after by every other process", async () => {
  const leaver = await tokenOf(["finance"]);
  const id = await idOf("finance");
  const at = (service: Pick<Service, "url">) =>
    ask(service, `GET /v1/logs/${log}/holds`, { token: leaver });
  expect((await at(other)).status).toBe(200);
  const bar = () =>
    ask(house, `POST /v1/principals/${id}/bar`, { token, json: { reason: "left the company" } });
  expect((await bar()).status).toBe(201);
  expect((await at(house)).json["code"]).toBe("unauthenticated");
  const refused = async () => (await at(other)).status === 401;
  await vi.waitUntil(refused, { timeout: 20_000 });
  expect((await bar()).status).toBe(200);
  expect((await register()).find((person) => person.id === id)?.barred_at).toBeDefined();
});

test("only who has all logs ends somebody's access to all, and of nobody who never came", async () => {
  const id = await idOf("auditor");
  const json = { reason: "test" };
  const bound = await tokenOf(["operator"], { logs: [log] });
  expect((await ask(house, `POST /v1/principals/${id}/bar`, { token: bound, json })).status).toBe(
    404,
  );
  const nobody = `POST /v1/principals/p_${"x".repeat(22)}/bar`;
  expect((await ask(house, nobody, { token, json })).status).toBe(404);
});

test("who is shut out of a log by its own mapping ends nobody's access to it, not even with all others", async () => {
  const own = await newLogOn(house, token, "with its own operators");
  const tenant = await tokenOf(["finance", "approver"]);
  const asked = () => holds(tenant, own);
  expect(await asked()).toBe(200);
  const grant = { claim: "roles", issuer: "minutebook-local", namespaces: "*" as const };
  const grants = (["finance", "auditor"] as const).map((role) => ({ ...grant, role, value: role }));
  const body = { approval: "", by: "p_x", grants, salt: CARD.salt };
  const before = (await register(own)).find(({ subject }) => subject === "finance approver");
  await house.appender.control(own, "role_mapping", () => body);
  const operator = await tokenOf(["operator"]);
  const listed = () => ask(house, `GET /v1/principals?log=${own}`, { token: operator });
  await vi.waitUntil(async () => (await listed()).status === 404, { timeout: 20_000 });
  for (const end of ["bar", "unbar"]) {
    for (const of of [{}, { log: own }]) {
      const json = { reason: "not theirs", ...of };
      const path = `POST /v1/principals/${before?.id}/${end}`;
      expect((await ask(house, path, { token: operator, json })).status).toBe(404);
    }
  }
  expect(await asked()).toBe(200);
});

test("a bar is lifted as it was laid, stays written down, and can be laid again", async () => {
  const back = await tokenOf(["auditor"]);
  const id = await idOf("auditor");
  const asked = () => holds(back);
  const end = async (how: "bar" | "unbar", of = {}) => {
    const json = { reason: "a slip", ...of };
    return (await ask(house, `POST /v1/principals/${id}/${how}`, { token, json })).status;
  };
  expect([await end("bar"), await asked()]).toEqual([201, 401]);
  expect([await end("unbar", { log }), await asked()]).toEqual([200, 401]);
  expect([await end("unbar"), await asked(), await end("unbar")]).toEqual([201, 200, 200]);
  expect((await register()).find((person) => person.id === id)?.barred_at).toBeUndefined();
  expect([await end("bar", { log }), await asked()]).toEqual([201, 404]);
  expect([await end("unbar", { log }), await asked()]).toEqual([201, 200]);
  const rows = await house.database.reader`select from lifted_bars where id = ${id}`;
  expect(rows).toHaveLength(2);
});

test("somebody's access is ended, and given back, from a terminal", async () => {
  const auditor = await tokenOf(["auditor"]);
  const id = await idOf("auditor");
  const asked = () => holds(auditor);
  const said = async (...args: string[]) => {
    const place = ["--server", house.url, "--token", token, "--reason", "has left"];
    const { status, stdout } = await minutebook(["access", ...args, ...place]);
    return [status, stdout];
  };
  expect(await said("bar", id, "--log", log)).toEqual([0, `${id}: barred, on log ${log}.\n`]);
  expect(await asked()).toBe(404);
  expect(await said("unbar", id, "--log", log)).toEqual([
    0,
    `${id}: no longer barred, on log ${log}.\n`,
  ]);
  expect(await asked()).toBe(200);
  expect(await said("bar", id)).toEqual([0, `${id}: barred, on all logs.\n`]);
  expect(await asked()).toBe(401);
  await said("unbar", id);
  expect(await said("bar", `p_${"y".repeat(22)}`)).toEqual([1, ""]);
});

const review = (json: object, of = log) =>
  ask(house, `POST /v1/logs/${of}/access_reviews`, { token, json });

/** By the clock of entries, which is brought up to that of the register. */
function today(): string {
  house.clock.time = Math.max(house.clock.time, Date.now());
  return instantText(house.clock.time).slice(0, "YYYY-MM-DD".length);
}

test("a review decides about everybody who had access: who is removed is out, on this log alone", async () => {
  const second = await newLogOn(house, token, "another");
  const removed = await idOf("approver");
  // Who is a viewer and nothing else is the platform's to look after.
  const people = (await register()).filter(({ barred_at, roles }) => {
    return barred_at === undefined && roles.join() !== "viewer";
  });
  const keep = people.map(({ id }) => id).filter((id) => id !== removed);
  const period = { from: "2026-01-01", to: today() };

  const [left] = keep;
  const without = { ...period, keep: keep.slice(1), remove: [removed] };
  expect((await review(without)).json).toMatchObject({
    code: "review-incomplete",
    members: [left],
  });
  const stranger = `p_${"z".repeat(22)}`;
  const beyond = { ...period, keep: [...keep, stranger], remove: [removed] };
  expect((await review(beyond)).json).toMatchObject({ members: [stranger] });
  expect((await review({ ...period, keep, remove: [...keep] })).status).toBe(400);

  const done = await review({ ...period, keep, remove: [removed] });
  expect(done.status).toBe(201);
  expect(done.json).toMatchObject({ principals: `${people.length}`, kept: `${keep.length}` });
  const approver = await tokenOf(["approver"]);
  expect(await holds(approver)).toBe(404);
  expect(await holds(approver, second)).toBe(200);
  await reproduces(String(done.json["index"]));
});

test("who was removed by a review comes back by a later one alone, which is an entry of the log", async () => {
  const [fresh, start] = [await newLogOn(house, token, "removed"), house.clock.time];
  const approver = await tokenOf(["approver"], { logs: [fresh] });
  const asked = () => holds(approver, fresh);
  expect(await asked()).toBe(200);
  const ids = async (is: boolean) =>
    (await register(fresh))
      .filter((one) => (one.subject === "approver") === is)
      .map(({ id }) => id);
  const [[removed = ""], others] = [await ids(true), await ids(false)];
  const period = { from: "2026-01-01", to: today() };
  const out = await review({ ...period, keep: others, remove: [removed] }, fresh);
  expect([out.status, await asked()]).toEqual([201, 404]);

  const json = { reason: "a friend", log: fresh };
  for (const end of ["unbar", "bar", "unbar"]) {
    const answer = await ask(house, `POST /v1/principals/${removed}/${end}`, { token, json });
    const said = end === "bar" ? [200, undefined] : [409, "already-decided"];
    expect([answer.status, answer.json["code"]]).toEqual(said);
  }
  expect(await asked()).toBe(404);
  // Whoever is not named stays out.
  expect((await review({ ...period, keep: others, remove: [] }, fresh)).status).toBe(201);
  expect(await asked()).toBe(404);
  const back = await review({ ...period, keep: [...others, removed], remove: [] }, fresh);
  expect(back.json).toMatchObject({ principals: `${others.length + 1}` });
  expect([back.status, await asked()]).toEqual([201, 200]);
  house.clock.time = start;
});

test("a review is of all who can still get in, however long ago they came, and follows the one before", async () => {
  const [fresh, start] = [await newLogOn(house, token, "of one day"), house.clock.time];
  await holds(await tokenOf(["auditor", "finance"]), fresh);
  const people = await register(fresh);
  const self = people.filter(({ subject }) => subject !== "auditor finance").map(({ id }) => id);
  const other = people.find(({ subject }) => subject === "auditor finance")?.id ?? "";
  const { superuser } = house.database;
  await superuser`
    update principals
    set first_at = first_at - interval '60 days', last_on = last_on - 40
    where log = ${fresh} and id = ${other}`;
  const to = today();
  const day = (days: number) => instantText(house.clock.time + days * 86_400_000).slice(0, 10);
  const gap = { from: day(0), to, keep: [...self, other], remove: [] };
  expect((await review({ ...gap, keep: self, from: "2026-01-01" }, fresh)).json).toMatchObject({
    ...{ code: "review-incomplete", members: [other] },
  });
  expect((await review({ ...gap, from: "2026-01-01" }, fresh)).status).toBe(201);
  house.clock.time += 2 * 86_400_000;
  const next = { ...gap, to: today() };
  expect((await review({ ...next, from: day(0) }, fresh)).json).toMatchObject({
    ...{ code: "invalid-request", members: ["from"] },
  });
  expect((await review({ ...next, from: day(-1) }, fresh)).status).toBe(201);
  house.clock.time = start;
});

test("who has left takes no place in a review: thousands can be looked at, and ten thousand have gone", async () => {
  const fresh = await newLogOn(house, token, "of thousands");
  const many = Array.from({ length: 1_500 }, (_, n) => `p_${n + 1}`);
  const keep = [...(await register(fresh)).map(({ id }) => id), ...many];
  await house.database.superuser`
    with people as (
      insert into principals select ${fresh}, 'p_' || n, 'i', 's', 'finance', now(), now() from generate_series(1, 11500) n)
    insert into barred_principals select ${fresh}, 'p_' || n, now(), 'p', 'left' from generate_series(1501, 11500) n`;
  expect((await review({ from: today(), to: today(), keep, remove: [] }, fresh)).status).toBe(201);
});

/** The entry's digest is of the lines that were kept, which name nobody. */
async function reproduces(index: string): Promise<void> {
  const { reader } = house.database;
  const [entry] = await reader<{ bytes: Uint8Array }[]>`
    select bytes from entries where log = ${log} and index = ${index}`;
  const decoded = decodeEntry(entry?.bytes ?? new Uint8Array());
  if (typeof decoded === "string" || decoded.kind !== "access_review") throw new Error("no review");
  const [kept] = await reader<{ lines: string; digest: string }[]>`
    select lines, encode(sha256(convert_to(lines, 'UTF8')), 'base64') as digest
    from access_reviews where log = ${log}`;
  expect(kept?.digest).toBe(decoded.body.list_sha256);
  expect(kept?.lines.split("\n").length).toBe(Number(decoded.body.principals) + 1);
  expect(kept?.lines).toContain('"kept":false');
  expect(kept?.lines).not.toContain("subject");
}

test("a log that nobody has reviewed for more than a quarter is overdue, until somebody does", async () => {
  const [fresh, start] = [await newLogOn(house, token, "overdue"), house.clock.time];
  await holds(token, fresh);
  const overdue = () => overdueReviews(house.database.reader, house.clock);
  house.clock.time = start + 92 * 86_400_000;
  expect(await overdue()).not.toContain(fresh);
  house.clock.time += 1;
  expect(await overdue()).toContain(fresh);
  const keep = (await register(fresh)).map(({ id }) => id);
  await review({ from: "2026-01-01", to: today(), keep, remove: [] }, fresh);
  expect(await overdue()).not.toContain(fresh);

  house.clock.time += 93 * 86_400_000;
  const late = await beside(house);
  const said = async () =>
    ((await ask(late, "GET /readyz")).json["reviews"] as { overdue: number }).overdue >= 3;
  await vi.waitUntil(said, { timeout: 10_000 });
  const { text } = await ask(late, "GET /metrics", { token: await everybody() });
  expect(text).toMatch(/minutebook_access_reviews_overdue [3-9]/);
  expect(house.logged.join("")).toContain("access review overdue");
  house.clock.time = start;
});
