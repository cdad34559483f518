import { copyFile, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FEED_CONSUMERS_MAX } from "../../src/core/evidence.ts";
import type { Role } from "../../src/flow/access/grant.ts";
import { problemsOf } from "../../src/http/outcomes.ts";
import { ask, everybody, type House, newLog, openHouse, sealedSize, tokenOf } from "./house.ts";

const ACK = "POST /v1/feed/ack";

let house: House;
/** Under two persons. */
let log: string;
let portal: string;
let size: string;
/** Codes that were answered, each as documented. */
const seen = new Set<unknown>();

beforeAll(async () => {
  house = await openHouse();
  const of = { unique_id: "dual", platform: "dotcom", billing_from: "2020-01-01T00:00:00.000Z" };
  const json = { ...of, control: "dual" };
  ({ log } = (await ask(house, "POST /v1/logs", { token: await everybody(), json })).json as {
    log: string;
  });
  portal = await tokenOf(["portal"], { logs: [log] });
  size = await sealedSize(house, log);
});
afterAll(() => house.close());

const month = (billing_month: string) => ({ billing_month, events: "1", compute_ms: "1.000000" });

async function acknowledge(change: object, token = portal): Promise<number | string> {
  const json = { log, consumer: "portal", months: [], up_to: size, ...change };
  const { json: answer, status } = await ask(house, ACK, { token, json });
  if (status >= 400) seen.add(answer["code"]);
  return status < 400 ? status : String(answer["code"]);
}

async function openBreaks(): Promise<unknown> {
  const token = await everybody();
  return (await ask(house, `GET /v1/logs/${log}/breaks?state=open`, { token })).json["breaks"];
}

test("under two persons nobody who decides about money ends a difference in a consumer's name", async () => {
  expect(await acknowledge({ months: [month("2026-11-01")] })).toBe(201);
  const before = await openBreaks();
  expect(before).toHaveLength(1);
  for (const role of ["finance", "approver", "operator"] as const) {
    const token = await tokenOf([role, "portal"], { logs: [log] });
    expect(await acknowledge({}, token)).toBe("approval-required");
  }
  expect(await acknowledge({}, await tokenOf(["portal", "auditor"]))).toBe("consumer-taken");
  expect(await openBreaks()).toEqual(before);
});

test("nor does one who decides about money state what a source has sent", async () => {
  const count = { day: "2026-11-19", kind: "quota", source: "portal", stated: "0" };
  const stated = async (...roles: Role[]) => {
    const token = await tokenOf(roles, { logs: [log] });
    return await ask(house, `POST /v1/logs/${log}/source_counts`, { token, json: count });
  };
  expect((await stated("finance", "platform")).json["code"]).toBe("approval-required");
  expect((await stated("platform")).status).toBe(201);
});

test("nor does one upload what the platform has", async () => {
  const uploaded = async (...roles: Role[]) => {
    const token = await tokenOf(roles, { logs: [log] });
    return await ask(house, `POST /v1/logs/${log}/platform_jobs`, { token, json: { jobs: [] } });
  };
  for (const role of ["finance", "approver", "operator"] as const) {
    expect((await uploaded(role, "platform")).json["code"]).toBe("approval-required");
  }
  expect((await uploaded("platform")).status).toBe(200);
});

test("every refusal of the feed is answered by its code, as documented", async () => {
  expect(await acknowledge({ up_to: "0" })).toBe("ack-backwards");
  expect(await acknowledge({ up_to: "9999" })).toBe("beyond-checkpoint");
  expect(await acknowledge({ months: [month("2099-01-01")] })).toBe("unknown-month");
  expect(await acknowledge({ months: [month("2019-12-01")] })).toBe("unknown-month");
  expect(await acknowledge({ months: [month("x")] })).toBe("invalid-request");
  expect(await acknowledge({ log: "f".repeat(32) }, await tokenOf(["portal"]))).toBe("not-found");
  const months = Array.from({ length: 26 }, (_, i) => {
    return month(`${2020 + Math.floor(i / 12)}-${String(1 + (i % 12)).padStart(2, "0")}-01`);
  });
  expect(await acknowledge({ months })).toBe("too-many-differ");
  for (let i = 1; i < FEED_CONSUMERS_MAX; i += 1) {
    expect(await acknowledge({ consumer: `c${i}`, up_to: "0" })).toBe(201);
  }
  expect(await acknowledge({ consumer: "one more" })).toBe("too-many-consumers");
});

test("an archive that cannot be read is said of what only it can tell, and nothing else waits for it", async () => {
  const away = `${house.archive}-away`;
  await rename(house.archive, away);
  try {
    const feed = `GET /v1/feed?log=${log}`;
    expect((await ask(house, feed, { token: portal })).status).toBe(200);
    expect((await readdir(away)).length).toBeGreaterThan(0);
    const { json } = await ask(house, `${feed}&cursor=9999`, { token: portal });
    expect(json["code"]).toBe("archive-unavailable");
  } finally {
    await rename(away, house.archive);
  }
});

test("a database that is behind its archive says so of what it does not have yet, and of no more", async () => {
  const { log: restored } = await newLog(house, "behind", 1);
  const sealed = BigInt(await sealedSize(house, restored));
  const token = await tokenOf(["portal"], { logs: [restored] });
  const checkpoints = join(house.archive, restored, "checkpoint");
  // What was sealed after the backup that the database was restored from.
  await copyFile(join(checkpoints, String(sealed)), join(checkpoints, String(sealed + 2n)));
  const codeAt = async (cursor: bigint) => {
    const asked = `GET /v1/feed?log=${restored}&cursor=${cursor}`;
    const { json, status } = await ask(house, asked, { token });
    return [status, json["code"]];
  };
  expect(await codeAt(sealed)).toEqual([200, undefined]);
  expect(await codeAt(sealed + 2n)).toEqual([503, "log-behind"]);
  expect(await codeAt(sealed + 3n)).toEqual([404, "beyond-checkpoint"]);
});

/** What any route with a token and a body answers, what a writer does, and what needs an archive that is ahead. */
const ELSEWHERE: readonly string[] = [
  ...["unauthenticated", "rate-limited", "issuer-unavailable", "busy", "internal"],
  ...["unsupported-media-type", "too-large", "body-too-slow"],
  ...["log-behind", "archive-unavailable", "signer-unavailable"],
];

test("and no other code is declared of an acknowledgement", () => {
  const declared = [...problemsOf(ACK).values()].flat().filter((code) => !ELSEWHERE.includes(code));
  expect(new Set(declared)).toEqual(seen);
});
