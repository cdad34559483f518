/** TLS on both sides, as processes: what Node trusts is read at its start. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, request } from "node:https";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../eventually.ts";
import { agentProcess } from "../process.ts";
import { closeStage, openStage, type Stage } from "../stage.ts";

/** For localhost, by nobody; worthless, and good for a hundred years. */
const CERT = fileURLToPath(new URL("tls/cert.pem", import.meta.url));
const KEY = fileURLToPath(new URL("tls/key.pem", import.meta.url));
const tls = { cert: readFileSync(CERT), key: readFileSync(KEY) };

const gitlab = createServer(tls, (incoming, response) => {
  response.end(`hello ${incoming.headers.host}`);
});
let stage: Stage;

beforeEach(async () => {
  stage = await openStage();
  gitlab.listen(0, "127.0.0.1");
  await once(gitlab, "listening");
});

afterEach(async () => {
  gitlab.closeAllConnections();
  gitlab.close();
  await once(gitlab, "close");
  await closeStage(stage);
});

/** What a runner that trusts the certificate gets through a relay with this in its environment. */
async function through(environment: string[]): Promise<{ status?: number; body: string }> {
  const host = `localhost:${(gitlab.address() as AddressInfo).port}`;
  const where = ["--state", stage.host.state, "--listen", "localhost:0"];
  const keys = ["--tls-cert", CERT, "--tls-key", KEY];
  const args = ["relay", ...where, ...keys, "--gitlab", `https://${host}`];
  const child = agentProcess(args, ["env", ...environment]);
  const closed = once(child, "close");
  let output = "";
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  try {
    await eventually(() => expect(output).toContain("Listening on https://localhost:"));
    const port = Number(/localhost:([0-9]+) for/.exec(output)?.[1]);
    const outgoing = request({ host: "localhost", port, path: "/", ca: tls.cert }).end();
    const [answer] = await once(outgoing, "response");
    return { status: answer.statusCode, body: (await text(answer)).replace(host, "HOST") };
  } finally {
    child.kill("SIGTERM");
    await closed;
  }
}

test("it listens by TLS, and asks a GitLab whose authority it was told of", async () => {
  const answered = await through([`NODE_EXTRA_CA_CERTS=${CERT}`]);
  expect(answered).toEqual({ status: 200, body: "hello HOST" });
});

test("a GitLab with a certificate of nobody that is trusted is not asked", async () => {
  const answered = await through([]);
  expect(answered).toMatchObject({ status: 502, body: expect.stringContaining("SELF_SIGNED") });
});
