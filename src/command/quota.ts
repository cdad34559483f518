/** `minutebook quota`: what a namespace has left, and the arithmetic behind it. */
import type { Command } from "commander";
import { explainQuota } from "../flow/quota/explain.ts";
import type { NamespaceQuota } from "../flow/quota/show.ts";
import { call } from "./api.ts";
import { apiOf, example, group, type ServerOptions, serverCommand } from "./option.ts";
import { print, table } from "./print.ts";

const EXPLAIN = "quota explain 1001 --log 0a1b…";

export function quotaCommand(): Command {
  return group("quota", "what namespaces have left", [explainCommand()]).addHelpText(
    "after",
    example(EXPLAIN),
  );
}

interface ExplainOptions extends ServerOptions {
  log: string;
}

function explainCommand(): Command {
  return serverCommand("explain", "the arithmetic of a namespace's quota, line by line")
    .argument("<namespace>", "the platform's number of the root namespace")
    .requiredOption("--log <id>", "the log")
    .addHelpText("after", example(EXPLAIN))
    .action(async (namespace: string, options: ExplainOptions) => {
      const [log, id] = [options.log, namespace].map(encodeURIComponent);
      const quota = await call<NamespaceQuota>(apiOf(options), "GET", `/v1/quotas/${log}/${id}`);
      print(options, quota, lines(quota));
    });
}

function lines(quota: NamespaceQuota): string[] {
  const { as_of, age_ms, complete, month, namespace_id, platform, source } = quota;
  const rows = explainQuota(quota).map(({ name, amount, from }) => [
    name,
    amount?.compute_minutes ?? "",
    amount?.compute_ms ?? "",
    from,
  ]);
  const alone = complete ? "" : "; other processes may know of more that runs";
  return [
    `Namespace ${namespace_id} of ${platform}, ${month.slice(0, 7)}: as of ${as_of} entries, ${age_ms} ms ago, live usage by ${source}${alone}.`,
    ...table(["", "minutes", "compute-ms", "from"], rows),
  ];
}
