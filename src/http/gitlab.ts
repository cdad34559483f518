/** Usage for GitLab's own pages. */
import { ciDedicatedHostedRunnerUsage, ciMinutesUsage } from "../flow/usage/gitlab.ts";
import { assertLog, assertNamespace, viewerOf, visibleNamespaces } from "./access.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed } from "./body.ts";
import { HostedRunnerSearch, MinutesSearch } from "./operations/gitlab.ts";
import type { Router } from "./router.ts";

export function gitlabRoutes(router: Router, { reading }: Services): void {
  router.guarded("GET /v1/gitlab/ci_minutes_usage", async (ask, caller) => {
    const { date: month, log, namespace } = parsed(MinutesSearch, ask.query());
    assertNamespace(caller, log, namespace);
    const seen = { visible: visibleNamespaces(caller, log), viewer: viewerOf(caller, log) };
    const asked = { log, namespace: BigInt(namespace), month, ...seen };
    return answer(200, await ciMinutesUsage(reading, asked));
  });

  router.guarded("GET /v1/gitlab/ci_dedicated_hosted_runner_usage", async (ask, caller) => {
    const search = parsed(HostedRunnerSearch, ask.query());
    const { billing_month: month, grouping, log, runner_id, year } = search;
    assertLog(caller, log);
    const runner = runner_id === undefined ? undefined : BigInt(runner_id);
    return answer(
      200,
      await ciDedicatedHostedRunnerUsage(reading, { log, grouping, month, year, runner }),
    );
  });
}
