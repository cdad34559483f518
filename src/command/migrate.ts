/** `minutebook migrate`: brings a database to the schema of this version. */
import { userInfo } from "node:os";
import type { Command } from "commander";
import { migrate, migrationState } from "../store/migrations.ts";
import { withDatabase } from "./database.ts";
import { migrationsFolder } from "./folder.ts";
import { type DataOptions, dataCommand, example } from "./option.ts";
import { print } from "./print.ts";

interface MigrateOptions extends DataOptions {
  appliedBy?: string;
  check?: true;
}

export function migrateCommand(): Command {
  return dataCommand("migrate", "apply what is pending, as the owner", "OWNER_DATABASE_URL")
    .option("--applied-by <text>", "who is answerable, kept for the auditor (default: your login)")
    .option("--check", "apply nothing; status 1 when something is pending")
    .addHelpText(
      "after",
      example(
        'migrate --applied-by "release 12"',
        "0 nothing is pending, 1 something is, or files and database contradict each other, " +
          "2 could not look",
      ),
    )
    .action(async (options: MigrateOptions) => {
      await withDatabase("owner", options, async (sql) => {
        const folder = migrationsFolder();
        const { pending } = await migrationState(sql, folder);
        if (options.check) {
          process.exitCode = pending.length > 0 ? 1 : 0;
          print(options, { pending }, [listed(pending, "pending")]);
          return;
        }
        const appliedBy = options.appliedBy ?? userInfo().username;
        const { applied } = await migrate({ sql, folder, appliedBy });
        print(options, { applied }, [listed(applied, "applied")]);
      });
    });
}

function listed(names: readonly string[], state: string): string {
  return names.length === 0 ? `Nothing ${state}.` : `${names.length} ${state}: ${names.join(", ")}`;
}
