/** All routes over the verbs that they call. */
import type { HttpBindings } from "@hono/node-server";
import type { Hono } from "hono";
import type { Controlling } from "../flow/control/propose.ts";
import type { Feeding } from "../flow/feed/read.ts";
import type { Keyring } from "../flow/key/keyring.ts";
import type { ServiceVersion } from "../flow/log/announce.ts";
import type { Creating } from "../flow/log/create.ts";
import type { Serving } from "../flow/log/serve.ts";
import type { Quotaing } from "../flow/quota/decide.ts";
import type { Readiness } from "../flow/ready.ts";
import type { Opening } from "../flow/reconcile/open.ts";
import type { Ingested, Ingesting } from "../flow/report/ingest.ts";
import { ingest } from "../flow/report/ingest.ts";
import type { Showing } from "../flow/usage/show.ts";
import type { usage } from "../flow/usage/usage.ts";
import { answer } from "./answer.ts";
import { creditRoutes } from "./credit.ts";
import { type Exporting, exportRoutes } from "./exports.ts";
import { feedRoutes } from "./feed.ts";
import { financeRoutes } from "./finance.ts";
import { gitlabRoutes } from "./gitlab.ts";
import { holdRoutes } from "./holds.ts";
import { logRoutes } from "./log.ts";
import { type Monthing, monthRoutes } from "./months.ts";
import { nameRoutes } from "./names.ts";
import { notificationRoutes } from "./notifications.ts";
import { openapiDocument } from "./openapi.ts";
import { operatorRoutes } from "./operator.ts";
import { type Oversight, oversightRoutes } from "./oversight.ts";
import { proposalRoutes } from "./proposals.ts";
import { type DecisionObserver, quotaRoutes } from "./quota.ts";
import { readerRoutes } from "./reader.ts";
import { receiptRoutes } from "./receipts.ts";
import { type Reconciliation, reconciliationRoutes } from "./reconciliation.ts";
import { answerReports } from "./reports.ts";
import { openRoom } from "./room.ts";
import { type Gate, type Observer, Router } from "./router.ts";
import { runnerRoutes } from "./runner.ts";
import type { Streams } from "./streams.ts";
import { tieOutRoutes } from "./tie-out.ts";

export interface Services {
  flow: Ingesting & Creating & { service: ServiceVersion; keyring: Keyring; quota: Quotaing };
  control: Controlling & Opening;
  months: Monthing;
  exports: Exporting;
  feeding: Feeding;
  streams: Streams;
  reading: Showing & Parameters<typeof usage>[0];
  serving: Serving;
  gate: Gate;
  oversight: Oversight;
  reconciliation: Reconciliation;
  observer: Observer &
    DecisionObserver & {
      reported(ingested: Ingested): void;
    };
  ready: () => Promise<Readiness>;
  metrics: () => Promise<{ type: string; text: string }>;
  version: string;
}

export function createApp(services: Services): Hono<{ Bindings: HttpBindings }> {
  const { flow, gate, observer } = services;
  const router = new Router({ gate, observer, room: openRoom() });
  healthRoutes(router, services);
  router.open("POST /v1/reports", (ask) => {
    return answerReports(ask, async (texts) => {
      const ingested = await ingest(flow, texts);
      observer.reported(ingested);
      return ingested;
    });
  });
  runnerRoutes(router, flow);
  operatorRoutes(router, services);
  financeRoutes(router, flow);
  proposalRoutes(router, services);
  monthRoutes(router, services);
  tieOutRoutes(router, services);
  exportRoutes(router, services);
  feedRoutes(router, services);
  nameRoutes(router, services);
  creditRoutes(router, services);
  readerRoutes(router, services);
  gitlabRoutes(router, services);
  holdRoutes(router, services);
  logRoutes(router, services);
  receiptRoutes(router, services);
  quotaRoutes(router, services);
  notificationRoutes(router, services);
  oversightRoutes(router, services);
  reconciliationRoutes(router, services);
  return router.finish();
}

function healthRoutes(router: Router, { ready, metrics, version }: Services): void {
  router.open("GET /livez", () => answer(200, { live: true, version }));
  router.open("GET /readyz", async () => {
    const readiness = await ready();
    return answer(readiness.ready ? 200 : 503, readiness);
  });
  router.guarded("GET /metrics", async () => {
    const { type, text } = await metrics();
    return new Response(text, { headers: { "content-type": type, "cache-control": "no-store" } });
  });
  const document = JSON.stringify(openapiDocument(version));
  router.open("GET /openapi.json", () => {
    return new Response(document, { headers: { "content-type": "application/json" } });
  });
}
