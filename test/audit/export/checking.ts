/** `check-export` of a file beside its manifest and its note. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { vkeyText } from "../archive.ts";
import { command, type Ended } from "../command.ts";
import type { TestLog } from "../log.ts";
import { type Exported, signed } from "./case.ts";

let written = 0;

export async function checked(
  { folder, archive }: { folder: string; archive: string },
  { file, json, note }: Exported,
  more: readonly string[],
): Promise<Ended> {
  written += 1;
  const at = (name: string): string => join(folder, `${written}.${name}`);
  writeFileSync(at("file"), file);
  writeFileSync(at("json"), json);
  writeFileSync(at("note"), note);
  const manifest = ["--manifest", at("json"), "--note", at("note")];
  const key = ["--vkey", vkeyText()];
  return await command("check-export", at("file"), archive, ...manifest, ...key, ...more);
}

/** As if the service itself had signed it so. */
export function resignedBy(
  log: TestLog,
  { manifest }: Exported,
  file: Uint8Array,
  said: Partial<Exported["manifest"]>,
): Exported {
  const { bytes, sha256, ...rest } = manifest;
  return signed(log, file, { ...rest, ...said });
}
