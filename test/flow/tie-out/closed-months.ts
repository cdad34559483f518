/** A log with two months that are closed, to the last file and acknowledgement; builds end at their very edges. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { CLOSING_SET } from "../../../src/flow/export/closing-set.ts";
import { make } from "../../../src/flow/export/make.ts";
import { askDue } from "../../../src/flow/export/schedule.ts";
import { SOURCES } from "../../../src/flow/export/sources.ts";
import { acknowledge } from "../../../src/flow/feed/acknowledge.ts";
import type { ExportFiles } from "../../../src/store/export-files.ts";
import { folderExports } from "../../../src/store/export-files-folder.ts";
import { listPending } from "../../../src/store/exports.ts";
import { closeHouse, type House, openHouse } from "../door.ts";
import { type MonthDesk, openDesk } from "../month/desk.ts";

export const [OCTOBER, NOVEMBER, DECEMBER] = ["2026-10-01", "2026-11-01", "2026-12-01"] as const;
/** Of October: 12 + 9 − 1 of namespace 7, half of 26 of 8, 3 of 9; failures are not charged. */
export const BILLED = "2160000.000000";
const EVENTS = "5";

export interface ClosedMonths {
  house: House;
  desk: MonthDesk;
  /** Where exports are kept. */
  folder: string;
  files: ExportFiles;
  close(): Promise<void>;
}

export async function openClosedMonths(): Promise<ClosedMonths> {
  const house = await openHouse();
  const folder = await mkdtemp(join(tmpdir(), "minutebook-tie-out-"));
  const files = folderExports(folder);
  const desk = await openDesk(house, "tie-out", { since: "2026-10-20T12:00:00.000Z" });
  await used(desk);
  await closed(desk, OCTOBER, "2026-11-04T00:00:00.000Z");
  const late = { job: "6", namespace: "8", minutes: 4, finished: "2026-10-06T00:00:00.000Z" };
  expect(await desk.build(late)).toBe("accepted");
  await closed(desk, NOVEMBER, "2026-12-04T00:00:00.000Z");
  await makeAll(desk, files);
  const months = { house, desk, folder, files };
  await acknowledged(months, "portal", BILLED);
  const close = async (): Promise<void> => {
    await closeHouse(house);
    await rm(folder, { recursive: true });
  };
  return { ...months, close };
}

async function used(desk: MonthDesk): Promise<void> {
  await desk.limit("7", { monthly_minutes: "10", beyond: "bill" });
  await desk.limit("8", { monthly_minutes: "10", beyond: "stop" });
  await desk.pack("7", { minutes: "5", purchased_in: OCTOBER, expires_in: NOVEMBER });
  const salt = `${"A".repeat(22)}==`;
  const effective_from = "2026-01-01T00:00:00.000Z";
  const halved = { class: "open_source", effective_from, project_id: "51", source: "test" };
  await desk.put("project_class", { ...halved, approval: "", by: "p_test", salt });
  desk.at("2026-11-01T00:10:00.000Z");
  for (const [job, namespace, project, minutes, finished, reason] of [
    ["1", "7", "50", 12, "2026-10-01T00:00:00.000Z", ""],
    ["2", "7", "50", 9, "2026-10-31T23:59:59.999Z", ""],
    ["3", "8", "51", 26, "2026-10-15T10:00:00.000Z", ""],
    ["4", "9", "50", 2, "2026-10-15T14:00:00.000Z", "runner_system_failure"],
    ["5", "9", "50", 3, "2026-10-16T00:00:00.000Z", ""],
    ["7", "9", "50", 1, "2026-11-01T00:00:00.000Z", ""],
  ] as const) {
    const build = { job, namespace, project, minutes, finished, reason };
    expect(await desk.build(build)).toBe("accepted");
  }
  await desk.adjust(OCTOBER, { namespace_id: "7", usage_month: OCTOBER, amount: "-60000.000000" });
  for (const namespace of ["7", ""]) await desk.account(namespace);
}

async function closed(desk: MonthDesk, month: string, at: string): Promise<void> {
  desk.at(at);
  await desk.attest();
  await desk.cover(`${month}T00:00:00.000Z`, `${at.slice(0, 7)}-01T00:00:00.000Z`);
  expect(await desk.close(month)).toEqual(["done"]);
  await desk.settle();
  expect(await desk.finish()).toMatchObject({ month, missing: [] });
  await desk.settle();
}

/** The files of closed months, as a service makes them by itself. */
async function makeAll(desk: MonthDesk, files: ExportFiles): Promise<void> {
  const { archive, clock, random, sql } = desk.finishing;
  const { signal } = new AbortController();
  const { keyring } = desk;
  const making = { archive, clock, keyring, random, sql, generator: "test 1", signal };
  await askDue({ ...making, rules: [], closingSet: CLOSING_SET });
  for (const row of await listPending(sql, 0n, 100)) {
    await make({ ...making, holds: sql, files, sources: SOURCES }, row);
  }
}

/** All of the log that is sealed. @param compute_ms of October */
export async function acknowledged(
  { house, desk }: Pick<ClosedMonths, "house" | "desk">,
  consumer: string,
  compute_ms: string,
): Promise<void> {
  const [seal] = await house.database.reader`select size from seals where log = ${desk.log}`;
  const months = [
    { billing_month: OCTOBER, events: EVENTS, compute_ms },
    { billing_month: NOVEMBER, events: "2", compute_ms: "300000.000000" },
  ];
  const said = { consumer, months, up_to: String(seal?.["size"]) };
  await acknowledge(desk.finishing, { log: desk.log, by: "p_portal" }, said);
}
