import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readLine } from "../../src/agent/usagelog.ts";
import { RUNNER, UNIQUE_ID, usageLine } from "./records.ts";

const read = (text: string) => readLine(new TextEncoder().encode(text));

describe("a record", () => {
  test("becomes what a report says of it, figures to the millisecond", () => {
    expect(read(usageLine({ uuid: "u", id: "42" }))).toEqual({
      kind: "record",
      uniqueId: UNIQUE_ID,
      measurement: {
        id: "u",
        job: {
          id: "42",
          pipeline_id: "3000000228",
          project_id: "50010",
          root_namespace_id: "1001",
        },
        runner: { executor: "docker+machine", system_id: "s_1818892f902b", uuid: RUNNER },
        usage: {
          duration_ms: "27014",
          failure_reason: "",
          finished_at: "2026-09-01T00:53:21.033Z",
          started_at: "2026-09-01T00:52:54.019Z",
          status: "success",
        },
      },
    });
  });

  test("keeps job ids beyond 2^53 apart", () => {
    const [a, b] = ["9007199254740992", "9007199254740993"].map((id) => read(usageLine({ id })));
    expect(a).toMatchObject({ measurement: { job: { id: "9007199254740992" } } });
    expect(b).toMatchObject({ measurement: { job: { id: "9007199254740993" } } });
  });

  test("stays in its month to the last nanosecond", () => {
    const line = read(usageLine({ finishedAt: "2026-09-30T23:59:59.999999999Z" }));
    expect(line).toMatchObject({
      measurement: { usage: { finished_at: "2026-09-30T23:59:59.999Z" } },
    });
  });

  test("T13, G27: a clock that stepped back keeps the runner's duration", () => {
    const times = { startedAt: "2026-11-01T00:00:20Z", finishedAt: "2026-10-31T23:59:50Z" };
    const line = read(usageLine({ ...times, duration: "42.5" }));
    expect(line).toMatchObject({ measurement: { usage: { duration_ms: "42500" } } });
  });

  test("G29: of a build that failed without a reason is taken as it is", () => {
    expect(read(usageLine({ status: "failed", reason: "" }))).toMatchObject({
      measurement: { usage: { status: "failed", failure_reason: "" } },
    });
  });

  test("may have members that a later runner adds, and ids that an old GitLab leaves at 0", () => {
    expect(read(usageLine({ more: ',"later":{"a":[1,{"b":null}]}' })).kind).toBe("record");
    expect(
      read(usageLine().replace('"root_namespace":{"id":1001}', '"root_namespace":{"id":0}')).kind,
    ).toBe("record");
  });

  test("T33: no text of a duration becomes a float", () => {
    expect(read(usageLine({ duration: "0.5005" }))).toMatchObject({
      measurement: { usage: { duration_ms: "501" } },
    });
    expect(read(usageLine({ duration: "1E3" }))).toMatchObject({
      measurement: { usage: { duration_ms: "1000000" } },
    });
    expect(read(usageLine({ duration: "1e400" }))).toMatchObject({
      kind: "malformed",
      reason: "job.duration_seconds",
    });
  });
});

test.each(["-3.5", "-0.0001", "-0", "-0.0", "-1e400", "-1E-400"])(
  "a duration of %s is rejected, and nothing is signed",
  (duration) => {
    expect(read(usageLine({ duration }))).toEqual({ kind: "rejected", uniqueId: UNIQUE_ID });
  },
);

test.each(["", " ", "\r", "\t \r"])("%j is an empty line", (text) => {
  expect(read(text)).toEqual({ kind: "empty" });
});

describe("malformed is", () => {
  const whole = usageLine();
  test.each<[string, string]>([
    ["a line of another program", "not json at all"],
    ["another program's JSON", '{"uuid":"x","some":"other"}'],
    ["an array", "[1]"],
    ["null", "null"],
    ["a torn line", whole.slice(0, 150)],
    ["a torn line glued to the next", whole.slice(0, 200) + whole],
    ["two records on one line", whole + whole],
    ["a byte order mark", `\ufeff${whole}`],
    ["a name twice with another value", usageLine({ more: ',"id":7' })],
    ["a name twice with the same value", usageLine({ id: "7", more: ',"id":7' })],
    ["a name twice, once escaped", usageLine({ id: "7", more: ',"\\u0069d":7' })],
    ["a zero time", usageLine({ finishedAt: "0001-01-01T00:00:00Z" })],
    ["a time that is no date", usageLine({ finishedAt: "2026-02-30T00:00:00Z" })],
    ["a time with an offset", usageLine({ finishedAt: "2026-09-01T02:53:21+02:00" })],
    ["an empty time", usageLine({ startedAt: "" })],
    ["a missing time", whole.replace('"started_at"', '"starts"')],
    ["no runner uuid", usageLine({ runner: "" })],
    ["no unique_id", usageLine({ uniqueId: "" })],
    ["NUL in a signed string", usageLine({ executor: "a\0b" })],
    ["a control character in a signed string", usageLine({ executor: "a\u001bb" })],
    ["a lone surrogate in a signed string", usageLine({ uuid: "\ud800" })],
    ["256 bytes in a signed string", usageLine({ executor: "é".repeat(128) })],
    ["a reason that is no word", usageLine({ reason: "Script failure" })],
    ["a duration in quotes", usageLine({ duration: '"1.5"' })],
    ["no duration", usageLine({ duration: "null" })],
    ["an id over 2^63−1", usageLine({ id: "9223372036854775808" })],
    ["an id with an exponent", usageLine({ id: "1e3" })],
    ["a negative id", usageLine({ id: "-1" })],
    ["an id in quotes", usageLine({ id: '"7"' })],
    ["nesting without end", `${"[".repeat(500_000)}`],
  ])("%s", (_, text) => {
    expect(read(text).kind).toBe("malformed");
  });

  test("bytes that are no UTF-8", () => {
    expect(readLine(Uint8Array.of(0x7b, 0xff, 0x7d))).toEqual({
      kind: "malformed",
      reason: "not UTF-8",
    });
  });
});

test("whatever byte of a line is changed or lost, reading it is an answer and never an exception", () => {
  const bytes = new TextEncoder().encode(usageLine());
  fc.assert(
    fc.property(
      fc.nat(bytes.length - 1),
      fc.integer({ min: 0, max: 255 }),
      fc.boolean(),
      (at, byte, cut) => {
        const changed = cut ? bytes.slice(0, at) : bytes.with(at, byte);
        expect(["record", "rejected", "malformed", "empty"]).toContain(readLine(changed).kind);
      },
    ),
  );
});
