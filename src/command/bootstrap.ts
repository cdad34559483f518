/** `minutebook bootstrap`: roles and database, once per cluster, by its superuser. */
import { Command } from "commander";
import { readSurroundings, type Surroundings } from "../config.ts";
import { bootstrapRoles } from "../store/roles.ts";
import { CommandError } from "./failure.ts";
import { example } from "./option.ts";
import { print } from "./print.ts";

const VARIABLES = {
  owner: "OWNER_DATABASE_URL",
  writer: "DATABASE_URL",
  reader: "READER_DATABASE_URL",
  auditor: "AUDITOR_DATABASE_URL",
} as const;
type Role = keyof typeof VARIABLES;

const ENVIRONMENT = `
SUPERUSER_DATABASE_URL says as whom. The roles get the passwords that stand in OWNER_DATABASE_URL,
DATABASE_URL (the writer), READER_DATABASE_URL and AUDITOR_DATABASE_URL, and the database is the one
that OWNER_DATABASE_URL names. A role whose variable is missing gets no password. Safe to repeat.
`;

export function bootstrapCommand(): Command {
  return new Command("bootstrap")
    .description("make the four roles and the database of a cluster, as its superuser")
    .addHelpText(
      "after",
      ENVIRONMENT +
        example(
          "bootstrap   # with SUPERUSER_DATABASE_URL=postgres://postgres@db.example/postgres",
          "0 done, 2 could not be done",
        ),
    )
    .action(async () => {
      const { databases } = readSurroundings();
      const { superuser, owner } = databases;
      if (superuser === undefined || owner === undefined) {
        throw new CommandError("no-database", "set SUPERUSER_DATABASE_URL and OWNER_DATABASE_URL");
      }
      const database = decodeURIComponent(new URL(owner).pathname.slice(1));
      const passwords = Object.fromEntries(
        (Object.keys(VARIABLES) as Role[]).flatMap((role) => passwordOf(role, database, databases)),
      );
      await bootstrapRoles(superuser, { database, passwords });
      const named = Object.keys(passwords).join(", ");
      print({}, {}, [
        `Database ${database} is ready; passwords are set for ${named || "no role"}.`,
      ]);
    });
}

/** Nothing for a role without a URL, or without a password in it. */
function passwordOf(
  role: Role,
  database: string,
  urls: Surroundings["databases"],
): [name: string, password: string][] {
  const text = urls[role];
  if (text === undefined) return [];
  const { username, password, pathname } = new URL(text);
  const name = `minutebook_${role}`;
  // The service would fail later, and less plainly.
  if (username !== name || decodeURIComponent(pathname.slice(1)) !== database) {
    const message = `${VARIABLES[role]} must sign in as ${name} to database "${database}"`;
    throw new CommandError("invalid-usage", message);
  }
  return password === "" ? [] : [[name, decodeURIComponent(password)]];
}
