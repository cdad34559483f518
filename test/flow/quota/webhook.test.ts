import { createServer } from "node:net";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { post, WebhookError } from "../../../src/flow/quota/webhook.ts";

/** Where nobody listens: a port that was free a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

async function refusalOf(url: string): Promise<WebhookError> {
  const webhook = { url, secrets: [new Uint8Array(32)] };
  const { signal } = new AbortController();
  const request = { webhook, id: "evt_1", body: "{}", now: 0, signal };
  const error = await post(request).catch((thrown: unknown) => thrown);
  if (!(error instanceof WebhookError)) throw new Error("taken, or not refused as one");
  return error;
}

test("a receiver that cannot be reached is told with the network's reason, and without its URL", async () => {
  const port = await closedPort();
  const away = await refusalOf(`http://127.0.0.1:${port}/hook/hunter2`);
  expect(away).toMatchObject({ reason: "unreachable", away: true });
  expect(inspect(away)).toContain("ECONNREFUSED");
  const malformed = await refusalOf(`http://user:hunter2@127.0.0.1:${port}/hook`);
  for (const error of [away, malformed]) expect(inspect(error)).not.toContain("hunter2");
});
