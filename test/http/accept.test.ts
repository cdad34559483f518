import { expect, test } from "vitest";
import { preferred } from "../../src/http/accept.ts";

const TYPES = ["application/json", "text/csv"] as const;

test.each([
  [undefined, "application/json"],
  ["", "application/json"],
  ["*/*", "application/json"],
  ["text/csv", "text/csv"],
  ["Text/CSV; charset=utf-8", "text/csv"],
  ["text/*", "text/csv"],
  ["text/html, text/*;q=0.1", "text/csv"],
  ["text/csv;q=0.5, application/json", "application/json"],
  ["application/json;q=0.5, text/csv;q=0.51", "text/csv"],
  ["text/csv;q=0.9, */*;q=0.1", "text/csv"],
  ["text/csv;q=0.1, */*;q=0.9", "application/json"],
  ["application/json;q=0.1, */*", "text/csv"],
  ["text/csv;q=0, */*", "application/json"],
  ["application/json;q=0, */*;q=0.001", "text/csv"],
  ["text/csv;q=0", "application/json"],
  ["text/csv;q=0.2, text/csv;header=absent;q=0.8, application/json;q=0.5", "text/csv"],
  ["text/csv, application/json", "application/json"],
  ["application/xml", "application/json"],
])("the type that is weighed most by its most specific range is the answer's (%s)", (...asked) => {
  const [header, type] = asked;
  expect(preferred(header, TYPES)).toBe(type);
});
