/** The files that a closed month names are those of its entries: another hash, count or name is found. */
import { expect, test } from "vitest";
import type { Body } from "../../../src/core/entry.ts";
import { auditFiles, filesOf, vkeyText } from "../archive.ts";
import { closedBody, pin, ready, start } from "../closing.ts";
import { command, openHome, store } from "../command.ts";

const MONTH = "2026-11-01";
type Exports = Body<"month_closed">["exports"];

/** A month that is closed with what is made of its honest files, and the findings of its audit. */
function closedWith(change: (files: Exports) => Exports) {
  const { agent, log } = start();
  log.submit(agent, { duration: "61000" });
  log.submit(agent, { duration: "1", namespace: "2" });
  ready(log, MONTH, [agent]);
  const body = closedBody(log, pin(log, MONTH), MONTH);
  const index = BigInt(log.force("month_closed", { ...body, exports: change(body.exports) }));
  return { log, index };
}

const NAMES = [
  "account_map",
  "allocation",
  "monthly_hosted_runner",
  "monthly_namespace",
  "monthly_project",
  "pack_rollforward",
  "portal",
];

test.each(NAMES)("another hash of %s than its rows give is found", async (name) => {
  const { index, log } = closedWith((files) => {
    return files.map((file) =>
      file.name === name ? { ...file, sha256: `${"A".repeat(43)}=` } : file,
    );
  });
  const { findings } = await auditFiles(filesOf(log));
  expect(findings.listed).toEqual([
    { code: "export-differs", index, detail: expect.stringMatching(new RegExp(`^${name}: `)) },
  ]);
});

test.each([
  ["a row too many", (files: Exports) => files.map((file) => ({ ...file, rows: "99" })), 7],
  ["a file that is left out", (files: Exports) => files.slice(1), 1],
  ["none at all", () => [], 1],
  ["a file that is named twice", (files: Exports) => [...files, ...files.slice(-1)], 1],
  ["another order", (files: Exports) => files.toReversed(), 1],
])("%s is found", async (_, change, count) => {
  const { log } = closedWith(change);
  const { findings } = await auditFiles(filesOf(log));
  expect([...findings.byCode]).toEqual([["export-differs", count]]);
});

test("the statement names the files of its month, and says that it did not make them", async () => {
  const { log } = closedWith((files) => files);
  const home = openHome();
  store(home.folder, filesOf(log));
  const made = await command("statement", home.folder, "--vkey", vkeyText(), "--month", "2026-11");
  home.remove();
  expect(made.err).toContain("NOT JUDGED here: the month's files");
  expect((await command("statement", "--help")).out).toContain("only verify makes the files again");
  const { exports } = JSON.parse(made.out);
  expect(exports.map(({ name }: { name: string }) => name)).toEqual(NAMES);
});
