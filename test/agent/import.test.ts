import {
  copyFileSync,
  cpSync,
  mkdirSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FILE, Host } from "./host.ts";
import { UNIQUE_ID, usageLine } from "./records.ts";
import { FakeService } from "./service.ts";

let host: Host;
let service: FakeService;
let url: string;
let kid: string;

beforeEach(async () => {
  host = new Host();
  service = new FakeService();
  url = await service.start();
  kid = await host.claim(url);
});

afterEach(async () => {
  await service.stop();
  rmSync(host.root, { recursive: true });
});

const lines = (count: number) => Array.from({ length: count }, () => usageLine());

test("T04, T17: every kind of line is counted as what it is, and only records are sent", async () => {
  const [first = "", ...others] = lines(300);
  const conflict = usageLine({ id: "77", duration: "1" });
  host.write(
    [
      first,
      ...others,
      "not json at all",
      "",
      '{"uuid":"x","some":"other program"}',
      first.slice(0, 100) + first,
      first,
      conflict,
      usageLine({ id: "77", duration: "2" }),
      usageLine({ duration: "-3.5" }),
      usageLine({ duration: "-0.0001" }),
      first.slice(0, 150),
    ].join("\n"),
  );
  const summary = await host.import();
  expect(summary).toMatchObject({
    files: 1,
    lines: 309,
    malformed: 4,
    unrouted: 0,
    total: {
      signed: 303,
      accepted: 301,
      duplicate: 1,
      conflict: 1,
      held: 0,
      refused: 0,
      rejected: 2,
    },
  });
  expect(summary.logs).toEqual([{ log: service.log, unique_id: UNIQUE_ID, tally: summary.total }]);
  expect(service.counters(kid)).toEqual(Array.from({ length: 303 }, (_, i) => i + 1));
  expect(service.batches).toEqual([100, 100, 100, 3]);
  expect(host.notices).toContainEqual(expect.stringContaining("malformed (not JSON)"));
});

test("an import ends with an attestation of all that was taken", async () => {
  const text = `${lines(3).join("\n")}\nfoo\n${usageLine({ duration: "-1" })}\n`;
  host.write(text);
  await host.import();
  expect(service.attestations).toMatchObject([
    {
      counter: "3",
      files: [{ name: FILE, offset: String(text.length) }],
      log: service.log,
      malformed: "1",
      rejected: "1",
      spool: "0",
    },
  ]);
  expect(Math.abs(Number(service.attestations[0]?.clock_offset_ms))).toBeLessThan(1500);
});

test("G31: a second import of the same folder sends nothing, also of a copy elsewhere", async () => {
  host.write(`${lines(5).join("\n")}\n${usageLine().slice(0, 99)}`);
  await host.import();
  const again = await host.import();
  const copy = join(host.root, "copy");
  mkdirSync(copy);
  copyFileSync(join(host.logs, FILE), join(copy, FILE));
  const copied = await host.import({ folder: copy });
  for (const summary of [again, copied]) {
    expect(summary).toMatchObject({ files: 0, lines: 0, malformed: 0, total: { signed: 0 } });
  }
  expect(service.reports).toHaveLength(5);
  expect(service.attestations.map(({ counter, malformed }) => [counter, malformed])).toEqual([
    ["5", "1"],
    ["5", "1"],
    ["5", "1"],
  ]);
});

test("killed after the reports and before the place in the file, nothing is signed again", async () => {
  const [sources, before] = [join(host.state, "sources"), join(host.root, "before")];
  cpSync(sources, before, { recursive: true });
  host.write(`${lines(600).join("\n")}\nfoo\n${usageLine({ duration: "-1" })}\n`);
  await host.import();
  rmSync(sources, { recursive: true });
  renameSync(before, sources);
  expect(await host.import()).toMatchObject({ lines: 602, total: { signed: 0, rejected: 0 } });
  expect(service.counters(kid)).toHaveLength(600);
  expect(service.attestations.at(-1)).toMatchObject({ malformed: "1", rejected: "1" });
});

test("of more files than an attestation holds, the newest are in it", async () => {
  const name = (day: number) =>
    `usage-log-2026-01-01-00-00-00.${String(day).padStart(3, "0")}.json`;
  for (let day = 0; day < 70; day++) host.write("foo\n", name(day));
  await host.import();
  const files = service.attestations[0]?.files.map((file) => file.name) ?? [];
  expect(files.length).toBeGreaterThan(30);
  expect(files).toEqual(Array.from({ length: 70 }, (_, i) => name(i)).slice(-files.length));
  expect(service.attestations[0]?.malformed).toBe("70");
});

test("what is appended is taken, and a torn line that was completed is a line", async () => {
  const [a, b = "", c] = lines(3);
  host.write(`${a}\n${b.slice(0, 200)}`);
  expect(await host.import()).toMatchObject({ lines: 2, malformed: 1, total: { accepted: 1 } });
  host.write(`${b.slice(200)}\n${c}\n`);
  expect(await host.import()).toMatchObject({ lines: 2, malformed: 0, total: { accepted: 2 } });
  expect(service.attestations.at(-1)).toMatchObject({ counter: "3", malformed: "0" });
});

test("a whole record without its newline is taken once", async () => {
  host.write(usageLine());
  expect(await host.import()).toMatchObject({ lines: 1, total: { accepted: 1 } });
  host.write(`\n${usageLine()}\n`);
  expect(await host.import()).toMatchObject({ lines: 1, total: { accepted: 1 } });
});

test("files come in the order of their names, and other names are left alone", async () => {
  const [a = "", b = "", c = ""] = ["1", "2", "3"].map((id) => usageLine({ id }));
  host.write(b, "usage-log-2026-11-02-00-00-00.000.json");
  host.write(a, "usage-log-2026-11-01-00-00-00.000.json");
  host.write(c, "usage-log-2026-11-03-00-00-00.000.json.gz");
  host.write(c, "config.toml");
  expect(await host.import()).toMatchObject({ files: 2, total: { accepted: 2 } });
  expect(service.reports.map(({ job }) => job.id)).toEqual(["1", "2"]);
});

describe("a file that is no longer the one that was read", () => {
  test("because it was replaced is read from its start, and said", async () => {
    host.write(`${lines(3).join("\n")}\n`);
    await host.import();
    writeFileSync(join(host.logs, FILE), `${lines(4).join("\n")}\n`);
    expect(await host.import()).toMatchObject({ lines: 4, total: { accepted: 4 } });
    expect(host.notices.join()).toContain("was truncated or replaced: read from its start");
  });

  test("because it was truncated is read from its start, to duplicates at worst", async () => {
    const [a, b, c] = lines(3);
    host.write(`${a}\n${b}\n`);
    await host.import();
    truncateSync(join(host.logs, FILE), `${a}\n`.length);
    expect(await host.import()).toMatchObject({ lines: 1, total: { duplicate: 1 } });
    host.write(`${c}\n${usageLine()}\n`);
    expect(await host.import()).toMatchObject({ lines: 2, total: { accepted: 2 } });
  });

  test("because it was renamed gives duplicates", async () => {
    host.write(`${lines(3).join("\n")}\n`);
    await host.import();
    renameSync(join(host.logs, FILE), join(host.logs, "usage-log-later.json"));
    expect(await host.import()).toMatchObject({ total: { accepted: 0, duplicate: 3 } });
  });
});

describe("two instances", () => {
  const uniqueId = "another-instance";
  const log = "f".repeat(32);
  let other: FakeService;
  let otherUrl: string;

  beforeEach(async () => {
    other = new FakeService();
    other.uniqueId = uniqueId;
    other.log = log;
    otherUrl = await other.start();
  });

  afterEach(async () => {
    await other.stop();
  });

  test("G32: each log gets its own jobs, with counters of its own, even under one job id", async () => {
    await host.claim(otherUrl, "other", log);
    const mixed = Array.from({ length: 600 }, (_, i) =>
      usageLine({ id: String(i >> 1), uniqueId: i % 2 === 0 ? UNIQUE_ID : uniqueId }),
    );
    host.write(`${mixed.join("\n")}\n`);
    const summary = await host.import();
    expect(summary.total.accepted).toBe(600);
    expect(summary.logs.map(({ tally }) => tally.accepted)).toEqual([300, 300]);
    expect(other.counters([...other.keys.keys()][0] ?? "").at(-1)).toBe(300);
  });

  test("a log whose server refuses holds up only itself, and is said at once", async () => {
    await host.claim(otherUrl, "other", log);
    host.write(`${usageLine()}\n${usageLine({ uniqueId })}\n`);
    other.misbehaviours = [(_, response) => response.writeHead(404).end() !== undefined];
    await expect(host.import()).rejects.toMatchObject({ code: "refused" });
    expect(host.notices).toContainEqual(expect.stringContaining("refused 1 reports: 404"));
    expect([service, other].map(({ reports }) => reports.length)).toEqual([1, 0]);
    expect(await host.import()).toMatchObject({ total: { signed: 0, accepted: 1 } });
  });

  test("lines of an instance without enrolment wait, and are sent once it is enrolled", async () => {
    const mixed = Array.from({ length: 900 }, (_, i) =>
      usageLine(i % 3 === 0 ? { uniqueId, duration: i === 3 ? "-1" : "1" } : {}),
    );
    host.write(`${mixed.join("\n")}\nnot json\n`);
    host.write(usageLine({ uniqueId: "a third" }));
    expect(await host.import()).toMatchObject({
      lines: 902,
      unrouted: 301,
      total: { accepted: 600 },
    });
    expect(await host.import()).toMatchObject({ lines: 0, unrouted: 301, total: { accepted: 0 } });
    await host.claim(otherUrl, "other", log);
    host.write(`\n${usageLine({ uniqueId })}\n`);
    const summary = await host.import();
    expect(summary).toMatchObject({
      lines: 301,
      malformed: 0,
      unrouted: 1,
      total: { signed: 300, accepted: 300, rejected: 1, duplicate: 0 },
    });
    expect(other.reports).toHaveLength(300);
    expect(await host.import()).toMatchObject({ files: 0, lines: 0, unrouted: 1 });
    expect(service.reports).toHaveLength(600);
  });
});

test("a batch is 1 to 500 reports", async () => {
  host.write(`${lines(7).join("\n")}\n`);
  for (const batch of [0, 501, 1.5])
    await expect(host.import({ batch })).rejects.toThrow(RangeError);
  await host.import({ batch: 3 });
  expect(service.batches).toEqual([3, 3, 1]);
});

test("a folder that is not there is a clear line", async () => {
  const folder = join(host.root, "nowhere");
  await expect(host.import({ folder })).rejects.toMatchObject({
    code: "unreadable",
    message: expect.stringContaining("nowhere cannot be read (ENOENT)"),
  });
});
