/** `minutebook feed`: the events for the Customers Portal as lines, from a cursor on. */
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
/** Statuses as a shell has them. */
const INTERRUPTED = { SIGINT: 130, SIGTERM: 143 } as const;

export function feedCommand(): Command {
  return serverCommand("feed", "what the Customers Portal is told to bill, one event on each line")
    .requiredOption("--log <id>", "the log")
    .option("--from <cursor>", "index of the first entry", cursor, "0")
    .option("--follow", "go on with what comes, until it is interrupted")
    .addHelpText("after", example("feed --log 0a1b… --from 1200 > events.ndjson"))
    .action(async ({ follow = false, ...options }: FeedOptions) => {
      const progress = showProgress("entries");
      let next = options.from;
      const say = (): void => {
        progress.stop();
        process.stderr.write(`go on with --from ${next}\n`);
      };
      // Also where nobody takes what is printed any more (main.ts).
      process.once("exit", say);
      const interrupted = (signal: keyof typeof INTERRUPTED): never => {
        process.exit(INTERRUPTED[signal]);
      };
      process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
      try {
        await print(apiOf(options), { ...options, follow }, (page) => {
          next = page.next_cursor;
          progress.update(options.log, Number(next), Number(page.as_of));
        });
      } finally {
        process.off("SIGINT", interrupted).off("SIGTERM", interrupted).off("exit", say);
        say();
      }
    });
}

/** @param printed told of each page once all of it is written */
async function print(
  api: Api,
  { follow, from, log }: { follow: boolean; from: string; log: string },
  printed: (page: FeedPage) => void,
): Promise<void> {
  let next = from;
  for (;;) {
    const search = { log, cursor: next, limit: PAGE_EVENTS, wait_s: follow ? WAIT_SECONDS : "0" };
    const page = await call<FeedPage>(api, "GET", `/v1/feed?${new URLSearchParams(search)}`);
    const lines = page.events.map((event) => `${JSON.stringify(event)}\n`);
    // Whoever reads slowly is waited for; of what nobody takes there is no next page: `main.ts` ends the process.
    await new Promise<void>((taken) => {
      process.stdout.write(lines.join(""), (error) => {
        if (!error) taken();
      });
    });
    printed(page);
    next = page.next_cursor;
    if (!follow && next === page.as_of) return;
  }
}

function cursor(text: string): string {
  if (!IntegerText.safeParse(text).success)
    throw new InvalidArgumentError("Expected an index such as 1200.");
  return text;
}
