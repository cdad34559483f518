/** `minutebook enrol`: names runners, and gets the one-time token that their agent claims. */
import { type Command, InvalidArgumentError } from "commander";
import { call } from "./api.ts";
import {
  apiOf,
  collect,
  example,
  instant,
  positive,
  type ServerOptions,
  serverCommand,
} from "./option.ts";
import { print } from "./print.ts";

/** 90 days. */
const CLAIM_SECONDS_MAX = 7_776_000;

/** Short names on the command line, and the members that they are. */
const MEMBERS: Readonly<Record<string, string>> = {
  uuid: "uuid",
  id: "runner_id",
  tracking: "tracking",
  type: "runner_type",
  machine: "machine_type",
};

type Runner = Record<string, string>;

interface EnrolOptions extends ServerOptions {
  log: string;
  runner: Runner[];
  namespace?: string[];
  from?: string;
  claimSeconds?: number;
}

export function enrolCommand(): Command {
  return serverCommand("enrol", "name runners for an agent's key; prints the token to claim it")
    .requiredOption("--log <id>", "the log that the runners report to")
    .requiredOption(
      "--runner <uuid=…,id=…,tracking=…,type=…,machine=…>",
      "a runner; may come again",
      (text: string, before: readonly Runner[] = []) => [...before, runnerOf(text)],
    )
    .option("--namespace <id>", "of group and project runners; may come again", collect)
    .option("--from <instant>", "since when the machine type holds (default: now)", instant)
    .option("--claim-seconds <n>", "how long the token is good", positive(CLAIM_SECONDS_MAX))
    .addHelpText(
      "after",
      example(
        "enrol --log 0a1b… \\\n" +
          "      --runner uuid=5d8f…,id=701,tracking=hosted,type=instance,machine=linux-small",
      ),
    )
    .action(async (options: EnrolOptions) => {
      const effective_from = options.from ?? new Date().toISOString();
      const enrolled = await call<{ token: string; claim_until: string }>(
        apiOf(options),
        "POST",
        "/v1/enrolments",
        {
          log: options.log,
          namespaces: options.namespace ?? [],
          runners: options.runner.map((runner) => ({ ...runner, effective_from })),
          claim_seconds: options.claimSeconds,
        },
      );
      print(options, enrolled, [
        enrolled.token,
        `Shown once; to be claimed until ${enrolled.claim_until}.`,
      ]);
    });
}

function runnerOf(text: string): Runner {
  const pairs = text.split(",").map((pair) => {
    const [name = "", ...value] = pair.split("=");
    return [MEMBERS[name] ?? "", value.join("=")] as const;
  });
  const runner = Object.fromEntries(pairs);
  const complete = Object.values(MEMBERS).every((member) => runner[member]);
  if (complete && pairs.length === Object.keys(MEMBERS).length) return runner;
  throw new InvalidArgumentError(
    `Expected each of ${Object.keys(MEMBERS).join(", ")} once, as name=value.`,
  );
}
