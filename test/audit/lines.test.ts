import { expect, test } from "vitest";
import { auditFiles, filesOf, said } from "./archive.ts";
import { honestLog } from "./honest.ts";
import { type Agent, agentOf, line, type TestLog } from "./log.ts";

/** An honest log, and after it what no honest service would have written. */
async function found(
  write: (log: TestLog, agent: Agent) => void,
): Promise<{ codes: string[]; first: bigint | undefined; last: bigint }> {
  const { log } = honestLog();
  const agent = log.enrol(9, [line("runner-a", { effective_from: "2026-11-20T12:00:00.001Z" })]);
  write(log, agent);
  const result = await auditFiles(filesOf(log));
  return { ...said(result), last: BigInt(log.size - 1) };
}

test("lines stand in ascending order", async () => {
  const { codes } = await found((log, agent) => {
    log.dispose(agent, [
      ["schema", "9", "a", ""],
      ["schema", "8", "b", ""],
    ]);
  });
  expect(codes).toEqual(["line-order"]);
});

test.each([
  ["a duplicate of nothing", "duplicate", ""],
  ["a duplicate of no usage entry", "duplicate", "1"],
  ["a duplicate of an entry to come", "duplicate", "999"],
  ["a refused report with an entry", "schema", "11"],
])("lines name the entry that stands: %s", async (_, code, index) => {
  const { codes, first, last } = await found((log, agent) => {
    log.dispose(agent, [[code, "9", "text", index]]);
  });
  expect({ codes, first }).toEqual({ codes: ["line-index"], first: last });
});

test("lines are of a known key", async () => {
  const { codes } = await found((log) => {
    log.dispose(agentOf(99), [["schema", "1", "a", ""]]);
  });
  expect(codes).toEqual(["jws-key"]);
});

test("lines note a counter that came again, and only one that did", async () => {
  const noted = await found((log, agent) => {
    log.force("usage", log.usage(agent, { counter: "1", job: "901" }));
    const second = log.usage(agent, { counter: "1", job: "902" });
    const index = log.force("usage", second);
    log.dispose(agent, [["counter-reused", "1", second.jws, index]]);
  });
  expect(noted.codes).toEqual([]);
  const silent = await found((log, agent) => {
    log.force("usage", log.usage(agent, { counter: "1", job: "901" }));
    log.force("usage", log.usage(agent, { counter: "1", job: "902" }));
  });
  expect(silent).toMatchObject({ codes: ["counter-reuse"], first: silent.last });
  const idle = await found((log, agent) => {
    const body = log.usage(agent, { counter: "1", job: "901" });
    const index = log.force("usage", body);
    log.dispose(agent, [["counter-reused", "1", body.jws, index]]);
  });
  expect(idle.codes).toEqual(["counter-reuse"]);
});

test.each(["accepted", "foo", "bad-signature", "conflict", "wrong-typ"])(
  "lines have a code that a log accounts for: not %s",
  async (code) => {
    const { codes, first, last } = await found((log, agent) => {
      log.dispose(agent, [[code, "9", "text", ""]]);
    });
    expect({ codes, first }).toEqual({ codes: ["line-code"], first: last });
  },
);

test("lines have counters from 1", async () => {
  const { codes } = await found((log, agent) => {
    log.dispose(agent, [["schema", "0", "text", ""]]);
  });
  expect(codes).toEqual(["line-code"]);
});

test.each<[string, (log: TestLog, agent: Agent) => string]>([
  ["nothing", () => ""],
  ["a hold", (log, agent) => log.submit(agent, { job: "902", uuid: "nobody" })],
  ["an attestation", (log, agent) => log.attest(agent)],
])("lines account for no report by a reused counter alone that names %s", async (_, name) => {
  const { codes, first, last } = await found((log, agent) => {
    log.submit(agent, { job: "901" });
    const index = name(log, agent);
    log.dispose(agent, [["counter-reused", "1", "dropped", index]]);
  });
  expect({ codes, first }).toEqual({ codes: ["line-index"], first: last });
});

test("lines account for a duplicate by a reused counter that names the job's usage", async () => {
  const { codes } = await found((log, agent) => {
    const index = log.submit(agent, { job: "901" });
    const { jws } = log.report(agent, { job: "901", counter: "1" });
    log.dispose(agent, [["counter-reused", "1", `${jws} `, index]]);
  });
  expect(codes).toEqual([]);
});

test("lines note a reused counter beside the report's own account, and name what that names", async () => {
  const refused = await found((log, agent) => {
    log.submit(agent, { job: "901" });
    log.dispose(agent, [
      ["schema", "1", "text", ""],
      ["counter-reused", "1", "text", ""],
    ]);
  });
  expect(refused.codes).toEqual([]);
  const other = await found((log, agent) => {
    const index = log.submit(agent, { job: "901" });
    const second = log.usage(agent, { counter: "1", job: "902" });
    log.force("usage", second);
    log.dispose(agent, [["counter-reused", "1", second.jws, index]]);
  });
  expect(other).toMatchObject({ codes: ["line-index"], first: other.last });
});

test("lines about another log use no counter of this one", async () => {
  const { codes } = await found((log, agent) => {
    log.force("usage", log.usage(agent, { counter: "1", job: "901" }));
    log.dispose(agent, [["wrong-log", "1", "text", ""]]);
  });
  expect(codes).toEqual([]);
});
