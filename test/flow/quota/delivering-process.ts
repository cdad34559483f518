/**
 * A process that sends what is in the outbox until it is killed: `delivering-process.ts DATABASE_URL
 * RECEIVER_URL`. It says a line when a receiver has taken something, and never gets to write it down.
 */
import { deliverLoop } from "../../../src/flow/quota/deliver.ts";
import { connect, type Sql } from "../../../src/store/connect.ts";
import { SECRET } from "./outbox.ts";
import { random } from "./told.ts";

const [database = "", url = ""] = process.argv.slice(2);
const sql = connect(database, { max: 2 });
await sql`select 1`;
const stalling = new Proxy<Sql>(sql, {
  apply: (query, self, parts: [TemplateStringsArray]) => {
    if (!parts[0].join("").includes("settled_at =")) return Reflect.apply(query, self, parts);
    process.stdout.write("taken\n");
    return new Promise(() => undefined);
  },
});
await deliverLoop({
  sql: stalling,
  clock: { now: () => Date.now() },
  random,
  webhook: { url, secrets: [SECRET] },
  signal: new AbortController().signal,
  observer: {
    attempted: () => undefined,
    failed: (error) => {
      throw error;
    },
    roundEnded: () => undefined,
  },
});
