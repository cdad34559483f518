/** What is answered about exports, asked in every way that is answered differently. */
import { vi } from "vitest";
import type { Answered, Request } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

export async function askOfExports(tell: Tell, { log }: { log: string }): Promise<void> {
  for (const format of ["csv", "ndjson", "parquet"]) {
    const json = { log, name: "account_map", format };
    const path = `/v1/exports/${log}/${(await tell("POST /v1/exports", { json })).json["id"]}`;
    await tell(`GET ${path}/manifest`);
    const isMade = async () => (await tell(`GET ${path}`)).json["state"] === "done";
    await vi.waitUntil(isMade, { timeout: 20_000, interval: 200 });
    for (const part of ["", "/manifest", "/manifest.note", "/file"])
      await tell(`GET ${path}${part}`);
    for (const range of ["bytes=0-3", "bytes=9999999-"]) {
      await tell(`GET ${path}/file`, { headers: { range } });
    }
  }
  await tell("POST /v1/exports", { json: { log, name: "portal", format: "csv" } });
  const beyond = { log, name: "entries", format: "csv", as_of: "999999999" };
  await tell("POST /v1/exports", { json: beyond });
  await tell(`GET /v1/exports?log=${log}`);
  const named = { kind: "namespace", id: "7", name: "=Seven" };
  for (const names of [[named], [named, named]]) {
    await tell(`PUT /v1/names/${log}`, { json: { names } });
  }
  await tell(`DELETE /v1/names/${log}/namespace/7`);
  await tell(`GET /v1/exports/${log}/${"0".repeat(32)}/file`);
}
