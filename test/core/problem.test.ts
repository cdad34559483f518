import { expect, test } from "vitest";
import { PROBLEMS, Problem, type ProblemCode } from "../../src/core/problem.ts";

const codes = Object.keys(PROBLEMS) as ProblemCode[];

test.each(codes)("%s is a kebab-case code with an error status and a title of its own", (code) => {
  const problem = new Problem(code);
  expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/);
  expect(problem.status).toBeGreaterThanOrEqual(400);
  expect(problem.message).toBe(code);
  expect(codes.filter((other) => new Problem(other).title === problem.title)).toEqual([code]);
});

test("a problem carries what helps the caller and nothing else", () => {
  expect(new Problem("busy").extension).toEqual({});
  expect(new Problem("too-many", { at_most: "500" }).extension).toEqual({ at_most: "500" });
});
