/** Credit runs under two persons' control, over HTTP: asked for, approved, applied beside requests, taken back. */
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { command } from "../audit/command.ts";
import { entriesOf, ofKind, reported } from "../flow/door.ts";
import { FourEyes } from "./four-eyes.ts";
import { type Answered, ask, everybody, newAgent, newLogOn, sealedSize, tokenOf } from "./house.ts";

let desk: FourEyes;
let log: string;
beforeAll(async () => {
  desk = await FourEyes.open();
  const { house } = desk;
  const token = await everybody();
  log = await newLogOn(house, token, "credited");
  await newAgent(house, log, 7);
  const usage = { finished_at: "2026-11-10T12:00:00.000Z" };
  const reports = Array.from({ length: 300 }, (_, i) => {
    const job = { id: String(1 + i), root_namespace_id: String(1 + i) };
    return reported(7, log, { counter: String(1 + i), job, usage });
  });
  expect((await ask(house, "POST /v1/reports", { json: { reports } })).status).toBe(200);
  // From here on under two persons: those of the log that was made so.
  const grants = await desk.grants();
  const mode = { billing_from: "2026-01-01T00:00:00.000Z", control: "dual", sources: [] };
  for (const [action, content] of [
    ["role_mapping", { grants }],
    ["mode", mode],
  ] as const) {
    const json = { log, action, content, reason: "start", ticket: "OPS-2" };
    const done = await ask(house, "POST /v1/proposals", { token, json });
    expect(done).toMatchObject({ status: 201, json: { state: "done" } });
  }
  desk.log = log;
});
afterAll(() => desk.house.close());

const CAUSE = { reason: "outage", ticket: "INC-7" };

async function post(path: string, json: object): Promise<Answered> {
  return await ask(desk.house, `POST /v1/logs/${log}/${path}`, { token: desk.proposer, json });
}

/** What was asked for is approved by the other person: the index of the run. */
async function approved({ json, status, text }: Answered): Promise<string> {
  expect([status, text]).toEqual([201, expect.stringContaining('"state":"open"')]);
  const opened = { index: String(json["index"]), nonce: String(json["nonce"]) };
  const approval = await desk.approve(opened);
  expect([approval.status, approval.text]).toEqual([201, expect.any(String)]);
  return String(approval.json["index"]);
}

async function shown(run: string): Promise<Record<string, unknown>> {
  const path = `/v1/logs/${log}/credit_runs/${run}`;
  return (await ask(desk.house, `GET ${path}`, { token: desk.approver })).json;
}

/** Nobody applies it: the service does, beside requests. */
async function whole(run: string): Promise<void> {
  await vi.waitUntil(
    async () => {
      const { lines, written } = await shown(run);
      return lines === written;
    },
    { timeout: 30_000 },
  );
}

test("a run takes effect when a second person has approved just its lines, and is taken back alike", async () => {
  const preview = await post("credit_previews", {
    form: "zero_rate",
    to: "2026-11-11T00:00:00.000Z",
  });
  expect(preview.json).toMatchObject({ lines: "300", total: "-18000000.000000" });
  const asked = await post("credit_runs", { preview: preview.json["preview"], ...CAUSE });
  const { lines_sha256, namespaces, top, by_machine_type } = preview.json;
  expect(namespaces).toBe("300");
  expect(JSON.parse(String(asked.json["effect"]))).toEqual({ namespaces, top, by_machine_type });
  expect(ofKind(await entriesOf(desk.house.database.reader, log), "credit_run")).toEqual([]);

  const run = await approved(asked);
  await whole(run);
  const [entry] = ofKind(await entriesOf(desk.house.database.reader, log), "credit_run");
  expect(entry?.body).toMatchObject({ lines_sha256, lines: "300" });
  const parts = ofKind(await entriesOf(desk.house.database.reader, log), "adjustment");
  expect(parts.map(({ body }) => [body.first_line, body.lines.length, body.approval])).toEqual([
    ["0", 128, entry?.body.approval],
    ["128", 128, entry?.body.approval],
    ["256", 44, entry?.body.approval],
  ]);
  const again = await post(`credit_runs/${run}/apply`, {});
  expect(again.json).toEqual({ lines: "300", written: "300" });

  const back = await approved(await post(`credit_runs/${run}/reverse`, CAUSE));
  await whole(back);
  expect(await shown(run)).toMatchObject({ reversed: back, total: "-18000000.000000" });
  expect(await shown(back)).toMatchObject({ reverses: run, total: "18000000.000000" });
  const twice = await post(`credit_runs/${run}/reverse`, CAUSE);
  expect(twice).toMatchObject({ status: 409, json: { code: "already-reversed" } });
  const anew = await post(`credit_runs/${back}/reverse`, CAUSE);
  expect(anew).toMatchObject({ status: 409, json: { code: "cannot-be-reversed" } });
});

test("packs that a run gives and takes back stand under its approval, named by its namespaces", async () => {
  const list = await post("namespace_lists", { namespaces: "9\n8\n" });
  expect(list).toMatchObject({ status: 201, json: { namespaces: "2" } });
  const { namespaces_sha256 } = list.json;
  const asked = { form: "goodwill_pack", minutes: "25", namespaces_sha256 };
  const { preview } = (await post("credit_previews", asked)).json;
  const run = await approved(await post("credit_runs", { preview, ...CAUSE }));
  await whole(run);
  const back = await approved(await post(`credit_runs/${run}/reverse`, CAUSE));
  await whole(back);
  const packs = ofKind(await entriesOf(desk.house.database.reader, log), "pack");
  expect(packs.map(({ body }) => [body.pack_id, body.minutes, body.source_version])).toEqual([
    [`${run}/8`, "25", "1"],
    [`${run}/9`, "25", "2"],
    [`${run}/8`, "0", "3"],
    [`${run}/9`, "0", "4"],
  ]);
  const runs = await ask(desk.house, `GET /v1/logs/${log}/credit_runs`, { token: desk.approver });
  expect(runs.json).toMatchObject({ credit_runs: [{ index: back }, { index: run }, {}, {}] });
});

test("what no preview has, or somebody else's log, is refused like anything missing", async () => {
  const unknown = await post("credit_runs", { preview: "0".repeat(32), ...CAUSE });
  expect(unknown).toMatchObject({ status: 404, json: { code: "not-found" } });
  const content = {
    ...{ form: "zero_rate", lines: "1", lines_sha256: Buffer.alloc(32).toString("base64") },
    ...{ reverses: "", selection: '{"as_of":"1"}', total: "-1.000000", ...CAUSE },
  };
  const made = await desk.propose({ action: "credit_run", content, ...CAUSE });
  expect(made).toMatchObject({ status: 422, json: { code: "no-preview" } });
  const many = await post("namespace_lists", { namespaces: "1\n".repeat(100_001) });
  expect(many).toMatchObject({ status: 413, json: { code: "too-many" } });
  const other = { token: await tokenOf(["finance"], { logs: ["f".repeat(32)] }) };
  const path = `/v1/logs/${log}/credit_runs`;
  expect((await ask(desk.house, `GET ${path}`, other)).status).toBe(404);
});

test("the auditor finds in the archive what two persons approved, all of it and no more", async () => {
  const { house } = desk;
  await sealedSize(house, log);
  const { logs } = (await ask(house, "GET /v1/logs", { token: await everybody() })).json;
  const trust = (logs as Record<string, string>[]).flatMap(({ vkey = "" }) => ["--vkey", vkey]);
  const { exit, out, err } = await command("verify", house.archive, ...trust);
  expect({ exit, err, out }).toMatchObject({ exit: 0, err: "" });
});
