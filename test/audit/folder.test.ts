import { renameSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { folderSource } from "../../audit/folder.ts";
import { filesOf, vkeyText } from "./archive.ts";
import { command, type Home, openHome, store } from "./command.ts";
import { smallLog } from "./honest.ts";
import { LOG_ID } from "./log.ts";

const log = smallLog();
const BUNDLE = `tile/entries/000.p/${log.size}`;

const homes: Home[] = [];
afterEach(() => {
  for (const home of homes.splice(0)) home.remove();
});

/** An archive in which what is at a path was moved away, and a link left in its place. */
function linkedAt(path: string): string {
  const home = openHome();
  homes.push(home);
  const archive = join(home.folder, "archive");
  store(archive, filesOf(log, [5, log.size]));
  const place = join(archive, LOG_ID, path);
  renameSync(place, join(home.folder, "elsewhere"));
  symlinkSync(join(home.folder, "elsewhere"), place);
  return archive;
}

test.each([
  ["checkpoint", "checkpoint is a symbolic link"],
  ["tile", "tile is a symbolic link"],
  ["tile/entries", "tile/entries is a symbolic link"],
  [`tile/0/000.p/${log.size}`, "ELOOP"],
  [BUNDLE, "ELOOP"],
])("a link in an archive is neither followed nor an accusation: %s", async (path, why) => {
  const { err, exit } = await command("verify", linkedAt(path), "--vkey", vkeyText());
  expect([exit, err]).toEqual([2, expect.stringContaining(why)]);
});

test("reading and listing refuse the same links, also below one", async () => {
  const source = folderSource(linkedAt("tile"), LOG_ID);
  const all = async (folder: string): Promise<string[]> => {
    const paths: string[] = [];
    for await (const path of source.list(folder)) paths.push(path);
    return paths;
  };
  for (const look of [source.read(BUNDLE), all("tile/entries"), all("tile"), all("")]) {
    await expect(look).rejects.toThrow("tile is a symbolic link");
  }
  expect(await source.read("tile2/entries/000")).toBeUndefined();
  expect(await all("cosignature")).toEqual([]);
});

test("the log's own folder may be a link: whoever names it chooses where it lies", async () => {
  const { exit } = await command("verify", linkedAt(""), "--vkey", vkeyText());
  expect(exit).toBe(0);
});
