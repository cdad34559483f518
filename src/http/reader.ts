/** Usage, quota, and single builds. */
import { IntegerText, nextMonth } from "../core/unit.ts";
import { showQuota } from "../flow/quota/show.ts";
import { explain } from "../flow/usage/explain.ts";
import { type UsageAnswer, type UsageQuery, usage, usageCsv } from "../flow/usage/usage.ts";
import { preferred } from "./accept.ts";
import { type Caller, viewerOf, visibleNamespaces } from "./access.ts";
import { answer } from "./answer.ts";
import type { Services } from "./app.ts";
import { parsed } from "./body.ts";
import { JobSearch, UsageSearch } from "./operations/shapes.ts";
import { logOf, member, namespaceOf } from "./path.ts";
import type { Router } from "./router.ts";

export function readerRoutes(router: Router, { flow, reading, serving }: Services): void {
  router.guarded("GET /v1/usage", async (ask, caller) => {
    const used = await usage(reading, usageQuery(parsed(UsageSearch, ask.query()), caller));
    const type = preferred(ask.incoming.headers.accept, ["application/json", "text/csv"]);
    return type === "text/csv" ? answerCsv(used) : answer(200, used);
  });

  router.guarded("GET /v1/jobs/:log/:id", async (ask, caller) => {
    const log = logOf(ask, caller);
    const job = member(IntegerText, ask.param("id"));
    const search = parsed(JobSearch, ask.query());
    const seen = { visible: visibleNamespaces(caller, log), viewer: viewerOf(caller, log) };
    return answer(200, await explain(reading, serving, { log, job, ...search, ...seen }));
  });

  router.guarded("GET /v1/quotas/:log/:namespace", async (ask, caller) => {
    return answer(200, await showQuota(flow.quota, namespaceOf(ask, caller)));
  });
}

function usageQuery(search: UsageSearch, caller: Caller): UsageQuery {
  const { log, month, group, fresh, namespace, project, runner, machine_type } = search;
  return {
    log,
    group,
    from: month ?? search.from,
    to: month === undefined ? search.to : nextMonth(month),
    tracking: search.tracking,
    namespace: namespace === undefined ? undefined : BigInt(namespace),
    project: project === undefined ? undefined : BigInt(project),
    runner: runner === undefined ? undefined : BigInt(runner),
    machineType: machine_type,
    visible: visibleNamespaces(caller, log),
    viewer: viewerOf(caller, log),
    fresh: fresh === "true",
  };
}

/** As of what is said in headers too: a table may have no lines. */
function answerCsv(used: UsageAnswer): Response {
  const { log, as_of, sealed, refreshed_at } = used;
  return new Response(usageCsv(used), {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "cache-control": "no-store",
      "minutebook-log": log,
      "minutebook-as-of": as_of,
      "minutebook-sealed": String(sealed),
      ...(refreshed_at !== undefined && { "minutebook-refreshed-at": refreshed_at }),
    },
  });
}
