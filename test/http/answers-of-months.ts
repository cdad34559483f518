/** What is answered about months, asked in every way that is answered differently. */
import { vi } from "vitest";
import type { Answered, Request } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

/** Of which nothing was used and in which no runner was there, so that nothing is needed to close it. */
const MONTH = "2026-10-01";

export async function askOfMonths(tell: Tell, { log }: { log: string }): Promise<void> {
  const path = `/v1/months/${log}/${MONTH}`;
  const step = (name: string) => tell(`POST ${path}/${name}`);
  for (const early of ["finish", "withdraw"]) await step(early);
  for (const name of ["close", "close", "withdraw", "close"]) await step(name);
  // Until its checkpoint is where it has to be.
  const isClosed = async (): Promise<boolean> => (await step("finish")).status === 200;
  await vi.waitUntil(isClosed, { timeout: 20_000, interval: 500 });
  for (const late of ["finish", "withdraw"]) await step(late);
  const note = async (): Promise<Answered> => await tell(`GET ${path}/statement.note`);
  await vi.waitUntil(async () => (await note()).status === 200, { timeout: 20_000, interval: 500 });
  const shown = ["statement", "statement.html", "allocations", "packs", "tieout"];
  for (const look of [path, `/v1/months/${log}`, ...shown.map((name) => `${path}/${name}`)]) {
    await tell(`GET ${look}`);
  }
  await tell(`GET /v1/months/${log}/2026-12-01/statement`);
  await tell(`GET ${path}/packs?after=none`);
  for (const zone of ["Pacific/Kiritimati", "Nowhere"]) {
    await tell(`GET ${path}/statement.html?time_zone=${zone}`);
  }
}
