import { chmod, chown, copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { serverAccount } from "../../src/embedded/account.ts";
import { removePostgres, startPostgres } from "../../src/embedded.ts";
import { connect } from "../../src/store/connect.ts";
import { type FreshDatabase, freshDatabase } from "../postgres.ts";

let db: FreshDatabase;
let secure: Awaited<ReturnType<typeof secureServer>>;
beforeAll(async () => {
  [db, secure] = await Promise.all([freshDatabase(), secureServer()]);
});
afterAll(() => Promise.all([db.drop(), secure.remove()]));

/** A server that takes TLS, by a certificate that nobody has signed but itself. */
async function secureServer() {
  const folder = await mkdtemp(join(tmpdir(), "minutebook-test-"));
  const { uid = -1, gid = -1 } = serverAccount();
  for (const name of ["key.pem", "cert.pem"]) {
    const path = join(folder, name);
    await copyFile(new URL(`../agent/relay/tls/${name}`, import.meta.url), path);
    // PostgreSQL takes no key that others may read.
    await chmod(path, 0o600);
    await chown(path, uid, gid);
  }
  await chown(folder, uid, gid);
  const files = { ssl_key_file: join(folder, "key.pem"), ssl_cert_file: join(folder, "cert.pem") };
  const settings = { ssl: "on", ...files, fsync: "off" };
  const embedded = await startPostgres({ folder: join(folder, "postgres"), settings });
  const remove = async () => {
    await embedded.stop();
    await removePostgres(join(folder, "postgres"));
    await rm(folder, { recursive: true });
  };
  return { embedded, remove };
}

test("an int8 beyond 2^53 comes back as the bigint that went in", async () => {
  const id = 9_007_199_254_740_993n;
  const [row] = await db.writer`select ${id}::int8 as one, array[${id}::int8] as many`;
  expect(row).toEqual({ one: id, many: [id] });
});

test("a numeric keeps every digit, as text", async () => {
  const [row] = await db.writer`select 12345678901234567890.000001::numeric(46, 6) as sum`;
  expect(row).toEqual({ sum: "12345678901234567890.000001" });
});

test("bytea is a plain Uint8Array whose slice is a copy", async () => {
  const sent = Uint8Array.from({ length: 256 }, (_, value) => value);
  const [row] = await db.writer<[{ bytes: Uint8Array }]>`select ${sent}::bytea as bytes`;
  expect(row.bytes).toEqual(sent);
  expect(Buffer.isBuffer(row.bytes)).toBe(false);
  row.bytes.slice(0, 1)[0] = 255;
  expect(row.bytes[0]).toBe(0);
});

test("a date stays the day it is, whatever the time zone", async () => {
  const [row] =
    await db.writer`select ${"2026-11-01"}::date as day, array['2026-12-01'::date] as days`;
  expect(row).toEqual({ day: "2026-11-01", days: ["2026-12-01"] });
});

test("a timestamptz is the instant to the millisecond", async () => {
  const instant = new Date("2026-11-29T12:34:56.789Z");
  const [row] = await db.writer`select ${instant}::timestamptz as at`;
  expect(row).toEqual({ at: instant });
});

test("a session carries its name and its time limits", async () => {
  const sql = connect(db.urls.writer, { name: "limits", limits: { statement: 1_234 } });
  const [row] = await sql`
    select
      current_setting('application_name') as name,
      current_setting('statement_timeout') as statement,
      current_setting('lock_timeout') as lock,
      current_setting('idle_in_transaction_session_timeout') as idle
  `;
  await sql.end();
  expect(row).toEqual({ name: "limits", statement: "1234ms", lock: "10s", idle: "10s" });
});

test("COPY over TCP does not wait for delayed acknowledgements", async () => {
  await db.owner`create table copied (line text)`;
  const sql = connect(db.urls.owner, { max: 1 });
  const took: number[] = [];
  for (let round = 0; round < 10; round++) {
    const started = performance.now();
    const stream = await sql`copy copied (line) from stdin`.writable();
    await new Promise<void>((resolve, reject) => {
      stream.on("error", reject).on("finish", resolve).end(`${round}\n`);
    });
    took.push(performance.now() - started);
  }
  const [row] = await sql`select count(*) from copied`;
  await sql.end();
  expect(row).toEqual({ count: 10n });
  // Nagle's algorithm costs each of them 80 ms; a machine that is busy otherwise does not slow down all ten.
  expect(Math.min(...took)).toBeLessThan(60);
});

test.each(["disable", "allow", "prefer", "require"])(
  "a question is refused when the server refuses, also on a connection that died with another (sslmode=%s)",
  async (mode) => {
    const { urls } = secure.embedded;
    const superuser = connect(urls.superuser, { max: 1 });
    const sql = connect(`${urls.reader}?sslmode=${mode}`, { max: 1, name: "dying" });
    const [row] = await sql`select ssl from pg_stat_ssl where pid = pg_backend_pid()`;
    expect(row).toEqual({ ssl: mode !== "disable" });
    const dying = expect(sql`select pg_sleep(60)`).rejects.toMatchObject({
      code: "CONNECTION_CLOSED",
    });
    await vi.waitUntil(
      async () => {
        const ended = await superuser`
        select pg_terminate_backend(pid)
        from pg_stat_activity
        where application_name = 'dying' and query like '%pg_sleep%' and state = 'active'
      `;
        return ended.length > 0;
      },
      { timeout: 20_000 },
    );
    await dying;
    const limit = (count: number) =>
      superuser`alter database minutebook connection limit ${superuser.unsafe(String(count))}`;
    await limit(0);
    for (let again = 0; again < 3; again += 1) {
      await expect(sql`select 1`).rejects.toMatchObject({
        code: expect.stringMatching(/^(?:CONNECTION_CLOSED|53300)$/),
      });
    }
    await limit(-1);
    // The last refusal may still be told to one of them.
    await vi.waitFor(async () => expect(await sql`select 1 as one`).toEqual([{ one: 1 }]), {
      timeout: 20_000,
    });
    await Promise.all([sql.end(), superuser.end()]);
  },
);

test.each(["verify-full", "verify-ca"])(
  "a certificate that is not trusted is refused (sslmode=%s)",
  async (mode) => {
    const sql = connect(`${secure.embedded.urls.reader}?sslmode=${mode}`, { max: 1 });
    await expect(sql`select 1`).rejects.toMatchObject({ code: "DEPTH_ZERO_SELF_SIGNED_CERT" });
    await sql.end();
  },
);
