/** `minutebook token`: a bearer token of development's own issuer. */
import { Command, InvalidArgumentError } from "commander";
import { ROLES } from "../core/control.ts";
import { readSigningKey } from "../custody.ts";
import { canBeBound, Role, type Scope } from "../flow/access/grant.ts";
import { CommandError } from "./failure.ts";
import { DATA_DEFAULT, dataFolder } from "./folder.ts";
import { localIdToken, localToken } from "./issuer.ts";
import { collect, example, positive } from "./option.ts";

const HOURS_MAX = 24;
const SECONDS_PER_HOUR = 3_600;

interface TokenOptions {
  data: string;
  role: Role[];
  log?: string[];
  namespace?: string[];
  subject?: string;
  hours: number;
  idToken?: string;
}

export function tokenCommand(): Command {
  return new Command("token")
    .description("mint a bearer token that the service of a data folder takes (development)")
    .option("--data <folder>", "the service's data folder", DATA_DEFAULT)
    .requiredOption("--role <role>", `one of ${ROLES.join(", ")}; may come again`, roles)
    .option("--log <id>", "only this log; may come again", collect)
    .option("--namespace <id>", "only this namespace, for viewers; may come again", collect)
    .option("--subject <text>", "whom it stands for; two persons need two (default: the roles)")
    .option("--hours <n>", "how long it is good", positive(HOURS_MAX), 8)
    .option("--id-token <nonce>", "an ID token with this nonce instead, as after a sign-in now")
    .addHelpText(
      "after",
      example(
        "token --role viewer --log 0a1b… --namespace 1001",
        "0 done, 2 no key of a local issuer there",
      ),
    )
    .action(async (options: TokenOptions) => {
      const key = readSigningKey(dataFolder(options.data).keys.issuer);
      const subject = options.subject ?? options.role.join("+");
      const { idToken: nonce, role: roles } = options;
      const seconds = options.hours * SECONDS_PER_HOUR;
      const token =
        nonce === undefined
          ? await localToken(key, grantsOf(options), { subject, seconds })
          : await localIdToken(key, { nonce, subject, roles });
      process.stdout.write(`${token}\n`);
    });
}

function roles(text: string, before: readonly Role[] = []): Role[] {
  const { data } = Role.safeParse(text);
  if (data === undefined) throw new InvalidArgumentError(`Expected one of ${ROLES.join(", ")}.`);
  return [...before, data];
}

/** @throws CommandError `invalid-usage` for namespaces of anybody but viewers */
function grantsOf({ role, log, namespace }: TokenOptions): Scope[] {
  const unbound = namespace && role.find((one) => !canBeBound(one));
  if (unbound !== undefined) {
    throw new CommandError("invalid-usage", `--namespace is for viewers only, not for ${unbound}`);
  }
  return role.map((one) => ({ role: one, logs: log ?? "*", namespaces: namespace ?? "*" }));
}
