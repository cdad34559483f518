/** What exports are made with in tests: sources that are small, slow or long, and all that stands around them. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Column, Page } from "../../../src/core/export/tables.ts";
import type { Random } from "../../../src/flow/clock.ts";
import { ask, type NewExport } from "../../../src/flow/export/ask.ts";
import { type Making, make } from "../../../src/flow/export/make.ts";
import { parseManifest } from "../../../src/flow/export/read.ts";
import type { Origin, Source } from "../../../src/flow/export/source.ts";
import type { Keyring } from "../../../src/flow/key/keyring.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { folderExports } from "../../../src/store/export-files-folder.ts";
import { readExport } from "../../../src/store/exports.ts";
import { pagesOf } from "../../../src/store/pages.ts";
import { sealerOf } from "../chain.ts";
import {
  closeHouse,
  type Door,
  type House,
  newAgent,
  newLog,
  openHouse,
  reported,
  signerFor,
} from "../door.ts";

const COLUMNS: readonly Column[] = [
  { name: "index", type: "integer", summed: true },
  { name: "leaf", type: "text" },
];
const PAGE_ROWS = 100;

/** Index and leaf of each entry. */
export const leaves: Source = (origin) => ({ columns: COLUMNS, pages: pages(origin) });

/** After two pages nothing comes any more; `told` is how many were given. */
export function stalled(told: (pages: number) => void): Source {
  return (origin) => ({ columns: COLUMNS, pages: slowly(origin, told) });
}

async function* slowly(origin: Origin, told: (pages: number) => void): AsyncGenerator<Page> {
  let given = 0;
  for await (const page of pages(origin)) {
    if (given === 2) await new Promise(() => undefined);
    yield page;
    given += 1;
    told(given);
  }
}

async function* pages({ tx, log, asOf }: Origin): AsyncGenerator<Page> {
  const query = tx`
    select index::text, encode(leaf, 'hex') as leaf
    from entries
    where log = ${log} and index < ${asOf}
    order by entries.index`;
  for await (const rows of pagesOf<{ index: string; leaf: string }>(tx, query, PAGE_ROWS)) {
    yield rows.map(({ index, leaf }) => [index, leaf]);
  }
}

/** As many rows, of a kilobyte each. */
export function long(rows: number): Source {
  return ({ tx }) => ({ columns: COLUMNS, pages: series(tx, rows) });
}

async function* series(tx: Origin["tx"], rows: number): AsyncGenerator<Page> {
  const query = tx`
    select number::text, repeat(md5(number::text), 32) as text
    from generate_series(1, ${rows}::int) as number`;
  for await (const page of pagesOf<{ number: string; text: string }>(tx, query, 1_000)) {
    yield page.map(({ number, text }) => [number, text]);
  }
}

/** A log on which something happens, and one process that makes exports of it. */
export interface Desk {
  house: House;
  door: Door;
  sql: Sql;
  log: string;
  /** Where exports are kept. */
  folder: string;
  making: Making & { random: Random; keyring: Keyring };
  /** So many builds more, and a checkpoint over all that there is. */
  grow(builds: number): Promise<void>;
  close(): Promise<void>;
}

export async function openDesk(): Promise<Desk> {
  const house = await openHouse();
  const door = house.open();
  const sql = house.database.writer;
  const log = await newLog(door, "exported");
  await newAgent(door, log, 1);
  const root = await mkdtemp(join(tmpdir(), "minutebook-exporting-"));
  const folder = join(root, "exports");
  const { keyring, random } = door;
  const archive = folderArchive(house.archive);
  let counter = 0;
  return {
    ...{ house, door, sql, log, folder },
    making: {
      ...{ sql, holds: sql, archive, keyring, random, files: folderExports(folder) },
      ...{ sources: { entries: leaves }, clock: { now: () => door.now }, generator: "test 1" },
      signal: new AbortController().signal,
    },
    grow: async (builds) => {
      const texts = Array.from({ length: builds }, () => {
        counter += 1;
        return reported(1, log, { counter: String(counter), job: { id: String(counter) } });
      });
      for (let at = 0; at < builds; at += 500) await door.submit(...texts.slice(at, at + 500));
      await seal({ ...sealerOf(sql, house.archive, signerFor), log });
    },
    close: async () => {
      await closeHouse(house);
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** How one that is asked for ends: with the SHA-256 of its manifest, or with why there is none. */
export async function outcomeOf(
  making: Making & { random: Random },
  log: string,
  file: NewExport,
): Promise<string> {
  const { sql } = making;
  const { id } = await ask(making, { log, by: "p_finance" }, file);
  const waiting = await readExport(sql, { log, id });
  if (waiting === undefined) throw new Error("nothing was asked for");
  const failure = await make(making, waiting).catch((error: Error) => error.message);
  const { error, manifest } = (await readExport(sql, waiting)) ?? waiting;
  return manifest === null ? `${error}: ${failure}` : parseManifest(manifest).sha256;
}
