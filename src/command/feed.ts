/** `minutebook feed`: the events for the Customers Portal as lines, from a cursor on. */
import { once } from "node:events";
import { type Command, InvalidArgumentError } from "commander";
import { IntegerText } from "../core/unit.ts";
import type { FeedPage } from "../flow/feed/read.ts";
import { type Api, call } from "./api.ts";
import { apiOf, example, type ServerOptions, serverCommand } from "./option.ts";
import { showProgress } from "./progress.ts";

interface FeedOptions extends ServerOptions {
  log: string;
  from: string;
  follow?: boolean;
}

const PAGE_EVENTS = "1000";
const WAIT_SECONDS = "30";

export function feedCommand(): Command {
  return serverCommand("feed", "what the Customers Portal is told to bill, one event on each line")
    .requiredOption("--log <id>", "the log")
    .option("--from <cursor>", "index of the first entry", cursor, "0")
    .option("--follow", "go on with what comes, until it is interrupted")
    .addHelpText("after", example("feed --log 0a1b… --from 1200 > events.ndjson"))
    .action(async ({ follow = false, ...options }: FeedOptions) => {
      const progress = showProgress("entries");
      try {
        const next = await print(apiOf(options), { ...options, follow }, (page) => {
          progress.update(options.log, Number(page.next_cursor), Number(page.as_of));
        });
        progress.stop();
        process.stderr.write(`go on with --from ${next}\n`);
      } finally {
        progress.stop();
      }
    });
}

/** @returns the cursor behind all that was printed */
async function print(
  api: Api,
  { follow, from, log }: { follow: boolean; from: string; log: string },
  printed: (page: FeedPage) => void,
): Promise<string> {
  let next = from;
  for (;;) {
    const search = { log, cursor: next, limit: PAGE_EVENTS, wait_s: follow ? WAIT_SECONDS : "0" };
    const page = await call<FeedPage>(api, "GET", `/v1/feed?${new URLSearchParams(search)}`);
    const lines = page.events.map((event) => `${JSON.stringify(event)}\n`);
    // Whoever reads slowly is waited for.
    if (!process.stdout.write(lines.join(""))) await once(process.stdout, "drain");
    printed(page);
    next = page.next_cursor;
    if (!follow && next === page.as_of) return next;
  }
}

function cursor(text: string): string {
  if (!IntegerText.safeParse(text).success) throw new InvalidArgumentError("an index, as 1200.");
  return text;
}
