/** `minutebook serve`: one process of the service, until a signal ends it. */
import { Command, Option } from "commander";
import { type Config, readConfig } from "../config.ts";
import { openLog } from "../telemetry.ts";
import { DATA_DEFAULT } from "./folder.ts";
import { example, positive } from "./option.ts";
import { print } from "./print.ts";
import type { Service } from "./service.ts";

interface ServeOptions {
  data: string;
  host?: string;
  port?: number;
  json?: true;
}

const PORT_MAX = 65_535;
const STATUSES = "0 stopped by a signal with nothing lost, 2 could not start";

export function serveCommand(): Command {
  return new Command("serve")
    .description("run the service; with no DATABASE_URL, all it needs lies in one folder")
    .option("--data <folder>", "database, archive and keys of the embedded default", DATA_DEFAULT)
    .option("--host <address>", "address to listen at (default: HOST, else 127.0.0.1)")
    .addOption(
      new Option("--port <number>", "port to listen at (default: PORT, else a free one)").argParser(
        (text) => (text === "0" ? 0 : positive(PORT_MAX)(text)),
      ),
    )
    .option("--json", "say where as one JSON line; the log goes to standard error either way")
    .addHelpText("after", example("serve --data ./data --port 8080", STATUSES))
    .action(serve);
}

async function serve({ data, host, port, json }: ServeOptions): Promise<void> {
  const asked = readConfig();
  const config: Config = { ...asked, host: host ?? asked.host, port: port ?? asked.port };
  const ending = signalled();
  const log = openLog(config.logLevel);
  // The driver asks each new connection for its types in a promise that nobody can wait for: a server
  // that dies at that moment must not take us with it. Requests and loops handle their own errors.
  process.on("unhandledRejection", (error) => log.error({ err: error }, "unhandled rejection"));
  // No other command needs the half of the program that answers, which takes as long to read as all the rest.
  const { startService } = await import("./service.ts");
  const service = await startService({ config, data, log });
  say(service, config, data, json === true);
  await ending;
  await service.stop();
}

/** A signal during the start is obeyed when the start is over; a second one ends the process at once. */
function signalled(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve());
  });
}

function say({ url }: Service, config: Config, data: string, json: boolean): void {
  if (json) {
    process.stdout.write(`${JSON.stringify({ url })}\n`);
    return;
  }
  const next =
    config.external === undefined
      ? [`a token: minutebook token --data ${data} --role operator`]
      : ["tokens come from the issuers of ISSUERS_FILE"];
  print({}, { url }, [`serving at ${url}`, ...next]);
}
