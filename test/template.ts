/**
 * One server per test run, and in it one migrated database that every test file copies
 * (see postgres.ts). Run by vitest before the first test file.
 */
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { type Embedded, removePostgres, startPostgres } from "../src/embedded.ts";
import { connect } from "../src/store/connect.ts";
import { migrate } from "../src/store/migrations.ts";

declare module "vitest" {
  interface ProvidedContext {
    template: Pick<Embedded, "urls" | "database">;
  }
}

export const MIGRATIONS = new URL("../migrations", import.meta.url).pathname;

/**
 * Nothing of it outlives the run, and no test crashes its machine: who kills a server has one of one's own. Its
 * passwords guard nothing, and thousands of connections hash them.
 */
const FLEETING = { fsync: "off", full_page_writes: "off", scram_iterations: "1" };

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const { embedded, remove } = await migratedCluster(FLEETING);
  project.provide("template", { urls: embedded.urls, database: embedded.database });
  return remove;
}

/** A server of its own, in a temporary folder, with a migrated database. */
export async function migratedCluster(
  settings: Record<string, string> = {},
): Promise<{ folder: string; embedded: Embedded; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), "minutebook-test-"));
  const embedded = await startPostgres({ folder, settings });
  const sql = connect(embedded.urls.owner, { max: 1, name: "test-template" });
  await migrate({ sql, folder: MIGRATIONS, appliedBy: "test" });
  await sql.end();
  const remove = async () => {
    await embedded.stop();
    await removePostgres(folder);
  };
  return { folder, embedded, remove };
}
