import { expect, test } from "vitest";
import type { Body } from "../../src/core/entry.ts";
import { assertFollows, lastMonth, packName } from "../../src/core/pack.ts";
import { PACK } from "./history.ts";

const version = (source_version: string, more: Partial<Body<"pack">> = {}) => ({
  ...PACK,
  source_version,
  ...more,
});

test("a pack is good for twelve months, its first one included", () => {
  expect(lastMonth("2026-04-01")).toBe("2027-03-01");
  expect(lastMonth("2026-01-01")).toBe("2026-12-01");
});

test("T02: no two packs have one name, wherever their source's name ends", () => {
  expect(packName({ source: "a-b", pack_id: "c" })).not.toBe(
    packName({ source: "a", pack_id: "b-c" }),
  );
});

test("a version follows a lower one, and may change minutes and expiry", () => {
  expect(() => assertFollows(undefined, version("0"))).not.toThrow();
  const changed = { minutes: "0", expires_in: "2026-11-01" };
  expect(() => assertFollows(version("9"), version("10", changed))).not.toThrow();
});

test.each([
  ["the same version", version("10"), "stale-source-version"],
  ["a lower one", version("9"), "stale-source-version"],
  ["another namespace", version("11", { namespace_id: "8" }), "another-pack"],
  ["another month of purchase", version("11", { purchased_in: "2026-10-01" }), "another-pack"],
])("%s does not follow", (_, next, code) => {
  expect(() => assertFollows(version("10"), next)).toThrow(expect.objectContaining({ code }));
});
