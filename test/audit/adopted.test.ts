import { expect, test } from "vitest";
import { sha256 } from "../../audit/native.ts";
import { exitOf } from "../../audit/print.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { EMPTY_EDGE, edgeRoot, grow } from "../../src/core/tile.ts";
import { auditFiles, filesOf, said } from "./archive.ts";
import { longLog } from "./honest.ts";
import { SALT, TestLog } from "./log.ts";

function adoption(log: TestLog, size: number, root?: Uint8Array) {
  const { edge } = grow(EMPTY_EDGE, log.leaves.slice(0, size), sha256);
  return {
    by: "operator",
    reason: "the disk is gone",
    root: encodeBase64(root ?? edgeRoot(edge, sha256)),
    salt: SALT,
    size: String(size),
  };
}

test.each([0, 1, 5, 255, 256, 257, 300])(
  "an archive that was adopted at %i entries is held to the tree's root there",
  async (size) => {
    const log = longLog(300);
    log.write("archive_adopted", adoption(log, size));
    while (log.size < 600) log.force("conflict", { jws: "x", stands: "0" });
    const { findings } = await auditFiles(filesOf(log));
    expect(findings.byCode.has("archive-adopted")).toBe(false);
    const other = longLog(300);
    other.write("archive_adopted", adoption(other, size, new Uint8Array(32)));
    expect(said(await auditFiles(filesOf(other)))).toEqual({
      codes: ["archive-adopted"],
      first: 300n,
    });
  },
);

test("an archive that was adopted past its own entry is found", async () => {
  const log = longLog(300);
  log.force("archive_adopted", { ...adoption(log, 300), size: "301" });
  expect(said(await auditFiles(filesOf(log))).codes).toEqual(["archive-adopted"]);
});

test("whether a log is public decides nothing, and needs an approval under dual control", async () => {
  const visibility = { approval: "", by: "operator", public: true, salt: SALT };
  const single = new TestLog();
  single.write("visibility", visibility);
  single.write("visibility", { ...visibility, public: false });
  expect(exitOf(await auditFiles(filesOf(single)))).toBe(0);
  const dual = new TestLog(undefined, { control: "dual" });
  dual.write("visibility", visibility);
  expect(said(await auditFiles(filesOf(dual))).codes).toEqual(["approval-required"]);
});
