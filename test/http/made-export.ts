/** An export that is asked for over HTTP, and waited for. */
import { vi } from "vitest";
import { ask, type House, tokenOf } from "./house.ts";

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
