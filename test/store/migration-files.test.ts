import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readMigrations, schemaHash } from "../../src/store/migration-files.ts";
import { requireCurrentSchema } from "../../src/store/migrations.ts";
import { freshDatabase } from "../postgres.ts";
import { MIGRATIONS } from "../template.ts";

const DOWN = "-- migrate:down\ndo $$ begin raise exception 'no way back'; end $$;\n";
const migration = (up: string, options = ""): string => `-- migrate:up${options}\n${up}\n${DOWN}`;

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "minutebook-migrations-"));
});
afterEach(() => rm(folder, { recursive: true }));

const put = (name: string, text: string): Promise<void> => writeFile(join(folder, name), text);

test.each([
  ["1_entries.sql", migration("select 1;"), /NNNN_noun/],
  ["0001-entries.sql", migration("select 1;"), /NNNN_noun/],
  ["0001_entries.sql", "select 1;", /needs `-- migrate:up`/],
  ["0001_entries.sql", "-- migrate:up\nselect 1;", /needs `-- migrate:up`/],
  ["0001_entries.sql", `${DOWN}-- migrate:up\nselect 1;`, /one up, then one down/],
  ["0001_entries.sql", `${migration("select 1;")}${DOWN}`, /one up, then one down/],
  ["0001_entries.sql", `drop table x;\n${migration("select 1;")}`, /SQL before/],
  ["0001_entries.sql", "-- migrate:up\nselect 1;\n-- migrate:down\n", /must raise/],
  ["0001_entries.sql", "-- migrate:up\nselect 1;\n-- migrate:down\ndrop table x;", /must raise/],
  ["0001_entries.sql", "-- migrate:up\n-- migrate:down\n-- raise exception", /must raise/],
])("a file %s that reads %j is malformed", async (name, text, reason) => {
  await put(name, text);
  const error = expect.objectContaining({
    code: "migration-malformed",
    message: expect.stringMatching(reason),
  });
  await expect(readMigrations(folder)).rejects.toEqual(error);
});

test("a file with a number that is taken is malformed", async () => {
  await put("0001_a.sql", migration("select 1;"));
  await put("0001_b.sql", migration("select 1;"));
  await expect(readMigrations(folder)).rejects.toMatchObject({ code: "migration-malformed" });
});

test("a file may explain itself before the first section, and say transaction:false", async () => {
  await put("0001_a.sql", `-- Why.\n\n${migration("select 1;", " transaction:false")}`);
  const [file] = await readMigrations(folder);
  expect(file).toMatchObject({ version: "0001", line: 3, transaction: false });
});

test("the schema's hash is the chain that a shell computes from the files' bytes", async () => {
  const texts = fc.array(fc.string({ unit: "grapheme" }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(texts, async (comments) => {
      await rm(folder, { recursive: true });
      folder = await mkdtemp(join(tmpdir(), "minutebook-migrations-"));
      let chain = "0".repeat(64);
      for (const [index, comment] of comments.entries()) {
        const name = `000${index}_x.sql`;
        const text = migration(
          `select $q$${comment.replaceAll("\n", " ").replaceAll("--", "")}$q$;`,
        );
        await put(name, text);
        const sum = createHash("sha256").update(text, "utf8").digest("hex");
        chain = createHash("sha256").update(`${chain} ${sum} ${name}\n`).digest("hex");
      }
      expect(await schemaHash(folder)).toBe(Buffer.from(chain, "hex").toString("base64"));
    }),
    { numRuns: 25 },
  );
});

test("the project's own migrations are applied, and none of them goes back", async () => {
  const db = await freshDatabase();
  await requireCurrentSchema(db.writer, MIGRATIONS);
  const files = await readMigrations(MIGRATIONS);
  expect(files.length).toBeGreaterThan(0);
  for (const { name } of files) {
    const [, down = ""] = (await readFile(join(MIGRATIONS, name), "utf8")).split("-- migrate:down");
    await expect(db.owner.unsafe(down), name).rejects.toThrow("does not go back");
  }
  await db.drop();
});
