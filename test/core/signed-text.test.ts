import { expect, test } from "vitest";
import { signedText } from "../../src/core/signed-text.ts";

const OF = { form: "export", name: "portal", origin: "ledger.test/1" } as const;

test("a document's text names its form, its name and its hash, one on each line", () => {
  // SHA-256 of "{}".
  const hash = "RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=";
  expect(signedText(OF, "{}")).toBe(`ledger.test/1/export\nportal\n${hash}\n`);
});

test.each([
  ["origin", { ...OF, origin: "ledger.test/1\n" }],
  ["name", { ...OF, name: "portal\r7" }],
])("a line break in its %s is refused", (_, of) => {
  expect(() => signedText(of, "{}")).toThrow("signed text");
});
