/** `minutebook agent relay`: between gitlab-runner and GitLab. */
import { readFileSync } from "node:fs";
import { type Command, InvalidArgumentError } from "commander";
import { SURROUNDINGS } from "../client.ts";
import { AgentError, errnoOf } from "../failure.ts";
import {
  type Common,
  everyMs,
  example,
  httpAddress,
  notice,
  print,
  subcommand,
  withLive,
} from "../invocation.ts";
import { Relay } from "./relay.ts";

interface RelayCommandOptions extends Common {
  listen: { host: string; port: number };
  gitlab: URL;
  tlsCert?: string;
  tlsKey?: string;
  every?: number;
}

const LOOPBACK = /^(?:localhost|127(?:\.[0-9]+){3}|::1)$/;

export function relayCommand(): Command {
  return subcommand(
    "relay",
    "pass on what gitlab-runner and GitLab say, and stop jobs beyond quota",
  )
    .requiredOption("--listen <host:port>", "where gitlab-runner finds it: its url", listenAddress)
    .requiredOption("--gitlab <url>", "GitLab's address", httpAddress)
    .option("--tls-cert <file>", "listen by TLS: the certificate and its chain, PEM")
    .option("--tls-key <file>", "and its key")
    .option("--every <seconds>", "between two heartbeats, 1 to 60 (default: 30)", everyMs)
    .addHelpText(
      "after",
      "\nRuns beside `agent import` on the same state folder, in place of `agent live`. While Minutebook is\n" +
        "away, everything passes. A certificate of GitLab's own authority goes into NODE_EXTRA_CA_CERTS.\n" +
        example("relay --state agent --listen 127.0.0.1:8090 --gitlab https://gitlab.example"),
    )
    .action(async (options: RelayCommandOptions) => {
      await withLive(options, async (signal) => {
        const { state: folder, listen, gitlab, every: intervalMs } = options;
        const tls = readTls(options);
        if (tls === undefined && !LOOPBACK.test(listen.host)) {
          notice("Without --tls-cert, tokens of jobs pass in the clear on this network.");
        }
        const surroundings = SURROUNDINGS;
        const relay = new Relay({
          ...{ folder, listen, gitlab, tls, surroundings, signal, intervalMs },
          onNotice: notice,
          onListening: (url) => notice(`Listening on ${url} for ${gitlab.origin}.`),
        });
        const counts = await relay.run();
        const { given, refused, stopped } = counts;
        print(
          options,
          counts,
          `${given} jobs passed, ${refused} refused, ${stopped} told to stop.`,
        );
      });
    });
}

function readTls({
  tlsCert,
  tlsKey,
}: RelayCommandOptions): { cert: string; key: string } | undefined {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new AgentError("unreadable", "--tls-cert and --tls-key go together.");
  }
  return { cert: readPem(tlsCert), key: readPem(tlsKey) };
}

function readPem(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new AgentError("unreadable", `${path} cannot be read (${errnoOf(cause)}).`, { cause });
  }
}

function listenAddress(text: string): { host: string; port: number } {
  // A scheme of no default port: else the port 80 would be lost.
  const url = URL.canParse(`tcp://${text}`) ? new URL(`tcp://${text}`) : undefined;
  if (url === undefined || url.port === "" || url.host !== text) {
    throw new InvalidArgumentError("Expected a host and a port, such as 127.0.0.1:8090.");
  }
  return { host: url.hostname.replace(/^\[|\]$/g, ""), port: Number(url.port) };
}
