import { expect, test } from "vitest";
import { supersedes } from "../../src/core/service.ts";

const A = { schema_sha256: "A", version: "1.9.0" };

test("a version is said first, when it is newer, or with another schema", () => {
  expect(supersedes(undefined, A)).toBe(true);
  expect(supersedes(A, { ...A, version: "1.10.0" })).toBe(true);
  expect(supersedes(A, { ...A, schema_sha256: "B" })).toBe(true);
});

test("a version is not said again, nor an older one after it, whatever its schema", () => {
  expect(supersedes(A, A)).toBe(false);
  expect(supersedes({ ...A, version: "1.10.0" }, A)).toBe(false);
  expect(supersedes({ ...A, version: "1.10.0" }, { ...A, schema_sha256: "B" })).toBe(false);
});
