/** An export that is asked for over HTTP, and waited for. */
import { readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { vi } from "vitest";
import { exportText } from "../../src/core/export/manifest.ts";
import { noteOf } from "../../src/core/note.ts";
import { signatureLine } from "../../src/core/signature-line.ts";
import { encodeUtf8 } from "../../src/core/text.ts";
import { ask, type House, KEYS, tokenOf } from "./house.ts";

export interface MadeExport {
  id: string;
  /** Of the export, below which its manifest and its file are. */
  path: string;
}

/** @param more of what is asked for; all entries as CSV otherwise */
export async function madeExport(
  house: House,
  log: string,
  more: object = {},
): Promise<MadeExport> {
  const token = await tokenOf(["finance"]);
  const json = { log, name: "entries", format: "csv", ...more };
  const id = String((await ask(house, "POST /v1/exports", { token, json })).json["id"]);
  const path = `/v1/exports/${log}/${id}`;
  const ended = async (): Promise<boolean> => {
    const { state } = (await ask(house, `GET ${path}`, { token })).json;
    if (state === "failed") throw new Error("not made");
    return state === "done";
  };
  await vi.waitUntil(ended, { timeout: 20_000, interval: 100 });
  return { id, path };
}

/** Grows to so many bytes, as whoever has the log's key might say. */
export async function grown(house: House, log: string, id: string, bytes: number): Promise<void> {
  const file = join(house.archive, "exports", log, `${id}.csv`);
  await truncate(file, bytes);
  const [row] = await house.database.writer<{ manifest: string }[]>`
    update exports
    set manifest = regexp_replace(manifest, '"bytes":"[0-9]+"', ${`"bytes":"${bytes}"`})
    where id = ${id}
    returning manifest`;
  const [first = ""] = (await readFile(`${file}.note`, "utf8")).split("/export\n");
  const text = exportText(first, "entries", row?.manifest ?? "");
  const lines = KEYS.checkpoint.map(async ({ publicKey, sign }) => {
    return signatureLine(first, publicKey, await sign(encodeUtf8(text)));
  });
  await writeFile(`${file}.note`, noteOf(text, await Promise.all(lines)));
}
