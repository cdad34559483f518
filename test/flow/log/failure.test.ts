import { expect, test } from "vitest";
import { Problem } from "../../../src/core/problem.ts";
import { type Failure, failureOf, spoken } from "../../../src/flow/log/failure.ts";

function coded(code: string): Error {
  return Object.assign(new Error("inside"), { code });
}

test.each<[Failure, string[]]>([
  ["later", ["CONNECTION_CLOSED", "CONNECT_TIMEOUT", "ECONNREFUSED", "EPIPE", "08006", "40001"]],
  ["later", ["40P01", "53100", "55P03", "57014", "57P01", "57P03", "25P03", "58030"]],
  ["later", ["ENOTFOUND", "EAI_AGAIN", "EAI_FAIL", "EHOSTDOWN", "ENETDOWN", "ENETUNREACH"]],
  ["data", ["22008", "22P02", "23514", "23502"]],
  ["broken", ["23505", "P0001", "42501", "XX000", "", "busy"]],
])("a failure is %s for %j", (failure, errors) => {
  expect(errors.map((code) => failureOf(coded(code)))).toEqual(errors.map(() => failure));
});

test("what is no error of ours is broken", () => {
  expect([failureOf("text"), failureOf(undefined), failureOf(new Error("x"))]).toEqual(
    new Array(3).fill("broken"),
  );
});

test("what will pass is answered busy, with its cause for operators; all else stays what it is", () => {
  const lost = coded("CONNECTION_CLOSED");
  expect(spoken(lost)).toMatchObject({ code: "busy", cause: lost });
  for (const error of [coded("23505"), new Problem("not-found")]) expect(spoken(error)).toBe(error);
});
