/** What a signed report becomes: every outcome of BYTES §3 that is on the log as an entry. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { TYP } from "../../../src/core/report.ts";
import { revoke } from "../../../src/flow/key/revoke.ts";
import { CARD, kidOf, NOW, UUID } from "../../core/history.ts";
import {
  closeHouse,
  codes,
  type Door,
  digestOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  openHouse,
  reported,
  sign,
} from "../door.ts";
import { linesOf, readBack } from "../replay.ts";

let house: House;
let door: Door;

beforeAll(async () => {
  house = await openHouse();
  door = house.open();
});

afterAll(() => closeHouse(house));

const OTHER = "0d4c5f57-6d2b-4c7c-a5ad-7f3a0f1d2c3b";

test("a report becomes one usage entry, and the entry holds its JWS verbatim", async () => {
  const log = await newLog(door, "one usage");
  await newAgent(door, log, 1);
  const jws = reported(1, log);
  const { results, log: named } = await door.submit(jws);
  expect(named).toBe(log);
  expect(results).toMatchObject([{ code: "accepted", counter: "1", digest: digestOf(jws) }]);
  const [usage] = ofKind(await readBack(house, log), "usage");
  expect(usage?.body).toMatchObject({ jws, compute_ms: "60000.000000", enrolment: "2" });
  expect(results[0]?.index).toBe(String(usage?.index));
});

test("the same report again is answered by the same entry, for ever, and nothing is written (L32, T03)", async () => {
  const log = await newLog(door, "again");
  await newAgent(door, log, 1);
  const jws = reported(1, log);
  const { results } = await door.submit(jws);
  const before = (await readBack(house, log)).length;
  door.now += 40 * 86_400_000;
  expect(await door.submit(jws)).toMatchObject({ log, results });
  expect(await door.submit(jws, jws)).toMatchObject({ log, results: [...results, ...results] });
  door.now = Date.parse(NOW);
  expect(await readBack(house, log)).toHaveLength(before);
});

test("every outcome is answered the same when its bytes come again", async () => {
  const log = await newLog(door, "all again");
  await newAgent(door, log, 1);
  const texts = [
    reported(1, log, { counter: "1" }),
    reported(1, log, { counter: "2" }), // duplicate
    reported(1, log, { counter: "3", usage: { duration_ms: "61000" } }), // conflict
    reported(1, log, { counter: "4", uuid: OTHER }), // hold
    sign(1, TYP.report, { counter: "5", log }), // schema
  ];
  const first = await door.submit(...texts);
  expect(codes(first)).toEqual([
    "accepted",
    "duplicate",
    "conflict",
    "outside-enrolment",
    "schema",
  ]);
  const before = (await readBack(house, log)).length;
  expect(await door.submit(...texts)).toEqual(first);
  for (const [i, text] of texts.entries()) {
    expect((await door.submit(text)).results).toEqual([first.results[i]]);
  }
  expect(await readBack(house, log)).toHaveLength(before);
});

test("the same job and figures under a new counter are a duplicate, whoever signed (T10, T17, T18)", async () => {
  const log = await newLog(door, "duplicate");
  await newAgent(door, log, 1);
  await newAgent(door, log, 2, [{ effective_from: "2026-12-01T00:00:00.000Z" }]);
  const { results } = await door.submit(reported(1, log));
  const [accepted] = results;
  const again = await door.submit(
    reported(1, log, { counter: "2" }),
    reported(2, log, { counter: "1" }),
  );
  expect(again.results).toMatchObject([
    { code: "duplicate", index: accepted?.index, leaf: accepted?.leaf },
    { code: "duplicate", index: accepted?.index, leaf: accepted?.leaf },
  ]);
  expect(ofKind(await readBack(house, log), "usage")).toHaveLength(1);
  expect(await linesOf(house, log)).toEqual([
    `2 duplicate ${accepted?.index}`,
    `1 duplicate ${accepted?.index}`,
  ]);
});

test("the same job with other figures is a conflict on the log, and the first stands (T04, T19)", async () => {
  const log = await newLog(door, "conflict");
  await newAgent(door, log, 1, [{}, { uuid: OTHER }]);
  await door.submit(reported(1, log));
  const longer = reported(1, log, { counter: "2", usage: { duration_ms: "61000" } });
  const elsewhere = reported(1, log, { counter: "3", uuid: OTHER });
  expect(codes(await door.submit(longer, elsewhere))).toEqual(["conflict", "conflict"]);
  const entries = await readBack(house, log);
  const [usage] = ofKind(entries, "usage");
  const stands = String(usage?.index);
  expect(ofKind(entries, "conflict").map(({ body }) => body)).toEqual([
    { jws: longer, stands },
    { jws: elsewhere, stands },
  ]);
});

test("one known report among a hundred does not reject the others (T05)", async () => {
  const log = await newLog(door, "hundred");
  await newAgent(door, log, 1);
  await door.submit(reported(1, log, { counter: "1", job: { id: "57" } }));
  const texts = Array.from({ length: 100 }, (_, i) =>
    reported(1, log, { counter: String(i + 2), job: { id: String(i) } }),
  );
  const found = codes(await door.submit(...texts));
  expect(found[57]).toBe("duplicate");
  expect(found.filter((code) => code === "accepted")).toHaveLength(99);
});

test("each report of a batch has its own answer, in the order of the request (T06)", async () => {
  const log = await newLog(door, "mixed bag");
  await newAgent(door, log, 1);
  const good = (n: number) => reported(1, log, { counter: String(n), job: { id: String(n) } });
  const forged = `${good(3).slice(0, -4)}AAAA`;
  const found = await door.submit(good(1), "no JWS", good(2), forged, good(4));
  expect(codes(found)).toEqual(["accepted", "malformed", "accepted", "bad-signature", "accepted"]);
});

test("the same job twice inside one batch gives one usage (T07)", async () => {
  const log = await newLog(door, "twice");
  await newAgent(door, log, 1);
  const found = await door.submit(
    reported(1, log),
    reported(1, log, { counter: "2" }),
    reported(1, log),
    reported(1, log, { counter: "3", usage: { duration_ms: "1" } }),
  );
  expect(codes(found)).toEqual(["accepted", "duplicate", "accepted", "conflict"]);
  const [first, second, third] = found.results;
  expect([second?.index, third?.index]).toEqual([first?.index, first?.index]);
});

test("counters and jobs are never joined to one string (T02)", async () => {
  const log = await newLog(door, "joined");
  await newAgent(door, log, 1);
  const found = await door.submit(
    reported(1, log, { counter: "1", job: { id: "11" } }),
    reported(1, log, { counter: "11", job: { id: "1" } }),
    reported(1, log, { counter: "111", job: { id: "111" } }),
  );
  expect(codes(found)).toEqual(["accepted", "accepted", "accepted"]);
});

test("two instances may use the same job, runner and counter (L38)", async () => {
  const found: string[] = [];
  for (const name of ["tenant a", "tenant b"]) {
    const log = await newLog(door, name);
    await newAgent(door, log, 1);
    found.push(...codes(await door.submit(reported(1, log))));
  }
  expect(found).toEqual(["accepted", "accepted"]);
});

test("what is held is an entry with its JWS and the first reason that applies", async () => {
  const log = await newLog(door, "holds");
  await newAgent(door, log, 1, [{ machine_type: "unheard-of" }]);
  await newAgent(door, log, 2, [{ runner_type: "group", uuid: OTHER }], ["8"]);
  const texts = {
    "outside-enrolment": reported(2, log, { uuid: OTHER }),
    future: reported(1, log, { counter: "1", usage: { finished_at: "2026-11-20T12:05:00.001Z" } }),
    "over-cap": reported(1, log, { counter: "2", usage: { duration_ms: "2678400001" } }),
    "no-rate": reported(1, log, { counter: "3" }),
  };
  const found = await door.submit(...Object.values(texts));
  expect(codes(found)).toEqual(Object.keys(texts));
  const holds = ofKind(await readBack(house, log), "hold");
  expect(holds.map(({ body }) => body)).toEqual(
    Object.entries(texts).map(([code, jws]) => ({ code, jws })),
  );
  expect(found.results.map(({ index }) => index)).toEqual(holds.map(({ index }) => String(index)));
});

test("a key's reports above its last trusted counter are held, back-dated or not, those below never (L34)", async () => {
  const log = await newLog(door, "revoked");
  const kid = await newAgent(door, log, 1);
  const before = await door.submit(reported(1, log, { counter: "1" }));
  const revocation = { last_trusted_counter: "5", reason: "host stolen" };
  await revoke(door, { log, kid, by: "ops" }, revocation);
  const old = { finished_at: "2026-02-01T00:00:00.000Z", started_at: "2026-02-01T00:00:00.000Z" };
  const found = await door.submit(
    reported(1, log, { counter: "5", job: { id: "5" } }),
    reported(1, log, { counter: "6", job: { id: "6" } }),
    reported(1, log, { counter: "7", job: { id: "7" }, usage: old }),
    reported(1, log, { counter: "8" }), // what stands already is a duplicate first
  );
  expect(codes(found)).toEqual(["accepted", "key-ended", "key-ended", "duplicate"]);
  expect(await door.submit(reported(1, log, { counter: "1" }))).toEqual(before);
});

test("a self-managed key that reports every hosted job first changes no hosted charge", async () => {
  const log = await newLog(door, "trackings");
  await newAgent(door, log, 1);
  await newAgent(door, log, 2, [{ uuid: OTHER, tracking: "self_managed" }]);
  const own = { ...CARD, tracking: "self_managed" as const, project_factors: {} };
  await door.appender.control(log, "rate_card", () => own);
  const squat = await door.submit(
    reported(2, log, { counter: "1", uuid: OTHER, usage: { duration_ms: "1" } }),
    reported(2, log, { counter: "2", uuid: UUID, usage: { duration_ms: "1" } }),
  );
  expect(codes(squat)).toEqual(["accepted", "outside-enrolment"]);
  expect(codes(await door.submit(reported(1, log)))).toEqual(["accepted"]);
  const usages = ofKind(await readBack(house, log), "usage").map(({ body }) => body);
  expect(usages.map(({ tracking, compute_ms }) => [tracking, compute_ms])).toEqual([
    ["self_managed", "1.000000"],
    ["hosted", "60000.000000"],
  ]);
});

test("every validly signed report has a row that names the entry which accounts for it", async () => {
  const log = await newLog(door, "accounted");
  const kid = await newAgent(door, log, 1);
  const texts = [
    reported(1, log, { counter: "1" }),
    reported(1, log, { counter: "2" }),
    reported(1, log, { counter: "3", usage: { duration_ms: "9" } }),
    reported(1, log, { counter: "4", uuid: OTHER }),
    sign(1, TYP.report, { counter: "5", log }),
  ];
  const { results } = await door.submit(...texts);
  const entries = await readBack(house, log);
  const rows = await house.database.reader<
    { counter: bigint; code: string; index: bigint | null; recorded: bigint }[]
  >`
    select counter, code, index, recorded from reports where log = ${log} order by counter`;
  expect(rows.map(({ code }) => code)).toEqual(results.map(({ code }) => code));
  for (const [i, row] of rows.entries()) {
    expect(String(row.index ?? "")).toBe(results[i]?.index ?? "");
    const entry = entries[Number(row.recorded)];
    const accounts =
      entry?.kind === "disposition"
        ? entry.body.kid === kid &&
          entry.body.lines.some((line) => line.counter === `${row.counter}`)
        : JSON.stringify(entry?.body).includes(texts[i] ?? "");
    expect(accounts).toBe(true);
  }
  expect(kid).toBe(kidOf(1));
});
