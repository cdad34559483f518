/** Notifications as they run beside requests: who comes to a level is told, and who wants it is sent it. */
import type { Config } from "../config.ts";
import { readWebhookSecrets } from "../custody.ts";
import { deliverLoop } from "../flow/quota/deliver.ts";
import { type Notifying, notifyLoop } from "../flow/quota/notify.ts";
import type { Webhook } from "../flow/quota/webhook.ts";
import type { Logger, Metrics } from "../telemetry.ts";
import { openTrouble } from "./trouble.ts";

/** Where notifications go, if anywhere. @throws ConfigError as `readWebhookSecrets` does */
export function readWebhook({ webhook }: Pick<Config, "webhook">): Webhook | undefined {
  return webhook && { url: webhook.url, secrets: readWebhookSecrets(webhook.secretFile) };
}

/** Resolves after the abort, when nothing is under way any more. */
export async function startNotifying(
  options: Notifying & {
    /** Undefined: what is told is kept for its owner to ask, and sent to nobody. */
    webhook: Webhook | undefined;
    signal: AbortSignal;
    log: Logger;
    metrics: Pick<Metrics, "notified" | "delivered" | "undelivered">;
  },
): Promise<void> {
  const { log, metrics, webhook } = options;
  const looking = openTrouble(log, "notify");
  const telling = notifyLoop({
    ...options,
    onTold: metrics.notified,
    onFailure: looking.failed,
    onRound: looking.roundEnded,
  });
  const sending = openTrouble(log, "webhook");
  const delivering =
    webhook &&
    deliverLoop({
      ...options,
      webhook,
      observer: {
        attempted: metrics.delivered,
        failed: sending.failed,
        roundEnded: (backlog) => {
          sending.roundEnded();
          if (backlog !== undefined) metrics.undelivered(backlog);
        },
      },
    });
  await Promise.all([telling, delivering]);
}
