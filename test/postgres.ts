/** Real PostgreSQL for tests: a fresh database of one's own, or a whole server to kill. */
import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { connect, type Sql } from "../src/store/connect.ts";
import { restrictDatabase } from "../src/store/roles.ts";
import { migratedCluster } from "./template.ts";

/** A migrated server of one's own, to kill or to slow down; call `remove` at the end. */
export const startCluster = migratedCluster;

type Role = "superuser" | "owner" | "writer" | "reader" | "auditor";

export interface FreshDatabase extends Record<Role, Sql> {
  urls: Record<Role, string>;
  /** Ends the five pools and removes the database. */
  drop(): Promise<void>;
}

/** A migrated database that nobody else uses; call `drop` in afterAll. Connects as needed. */
export async function freshDatabase(): Promise<FreshDatabase> {
  const template = inject("template");
  const name = `test_${randomBytes(8).toString("hex")}`;
  const at = (role: Role, database: string): string => {
    const url = new URL(template.urls[role]);
    url.pathname = database;
    return url.href;
  };
  const admin = connect(at("superuser", "postgres"), { max: 1, name: "test-admin" });
  // By files: page by page through the log, as is usual, takes twice as long to make and to remove.
  await admin`
    create database ${admin(name)}
    template ${admin(template.database)} strategy file_copy owner minutebook_owner`;
  await restrictDatabase(admin, name);
  const urls = {
    superuser: at("superuser", name),
    owner: at("owner", name),
    writer: at("writer", name),
    reader: at("reader", name),
    auditor: at("auditor", name),
  };
  const pools = {
    superuser: connect(urls.superuser),
    owner: connect(urls.owner),
    writer: connect(urls.writer),
    reader: connect(urls.reader),
    auditor: connect(urls.auditor),
  };
  const drop = async () => {
    await Promise.all(Object.values(pools).map((pool) => pool.end({ timeout: 5 })));
    await admin`drop database ${admin(name)} with (force)`;
    await admin.end();
  };
  return { ...pools, urls, drop };
}
