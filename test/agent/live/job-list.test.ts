import fc from "fast-check";
import { expect, test } from "vitest";
import { goDurationMs, readJobList } from "../../../src/agent/live/job-list.ts";

test("the runner's list is read line by line: address, id beyond 2^53, elapsed time", () => {
  const text =
    "url=https://gitlab.example/g/sub/p/-/jobs/9007199254740993 state=running stage=step_script executor_stage=docker_run duration=1h2m3.0045s\n" +
    "url=https://gitlab.example/g/p/-/jobs/7 state=pending stage= executor_stage= duration=12.9ms\n";
  expect(readJobList(text)).toEqual({
    running: [
      { project: "https://gitlab.example/g/sub/p", id: "9007199254740993", elapsedMs: 3_723_004n },
      { project: "https://gitlab.example/g/p", id: "7", elapsedMs: 12n },
    ],
    malformed: 0,
  });
});

test.each(["success", "failed", "canceled", "terminated", "timedout"])(
  "a job whose state is %s has ended, though its duration goes on growing in the list",
  (state) => {
    const line = `url=https://gitlab.example/g/p/-/jobs/7 state=${state} stage=x executor_stage=y duration=1m0s`;
    expect(readJobList(line)).toEqual({ running: [], malformed: 0 });
  },
);

test("a line of another form is counted, and the others are read", () => {
  const good =
    "url=https://gitlab.example/g/p/-/jobs/7 state=running stage=x executor_stage=y duration=1s";
  const bad = ["<html>", good.replace("1s", "soon"), good.replace("jobs/7", "jobs/x"), "url="];
  expect(readJobList([...bad, good].join("\n"))).toMatchObject({
    running: [{ id: "7" }],
    malformed: bad.length,
  });
});

test("a duration is cut to whole milliseconds, as Go prints it from nanoseconds", () => {
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 18n }), (ns) => {
      expect(goDurationMs(asGo(ns))).toBe(ns / 1_000_000n);
    }),
  );
});

/** time.Duration.String of Go. */
function asGo(ns: bigint): string {
  if (ns === 0n) return "0s";
  const decimal = (value: bigint, digits: number): string => {
    const text = value.toString().padStart(digits + 1, "0");
    const fraction = text.slice(-digits).replace(/0+$/, "");
    return `${text.slice(0, -digits)}${fraction === "" ? "" : `.${fraction}`}`;
  };
  if (ns < 1_000n) return `${ns}ns`;
  if (ns < 1_000_000n) return `${decimal(ns, 3)}µs`;
  if (ns < 1_000_000_000n) return `${decimal(ns, 6)}ms`;
  const minutes = ns / 60_000_000_000n;
  const seconds = `${decimal(ns % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}
