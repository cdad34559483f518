/** A file that is fetched from a service which answers as no service should: it comes to an end, and to no byte too many. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { download } from "../../src/command/download.ts";

const FILE = Buffer.from("twenty bytes of data");
const MANIFEST = {
  bytes: String(FILE.length),
  sha256: createHash("sha256").update(FILE).digest("base64"),
};

async function fetched(answer: RequestListener): Promise<{ bytes: Buffer; error: unknown }> {
  const server = createServer(answer).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const api = { server: `http://127.0.0.1:${port}`, token: "t" };
  const chunks: Uint8Array[] = [];
  let error: unknown;
  try {
    for await (const chunk of download(api, "/x", MANIFEST)) chunks.push(chunk);
  } catch (thrown) {
    error = thrown;
  }
  return { bytes: Buffer.concat(chunks), error };
}

test.each([200, 204, 206])(
  "answers of %i without a byte are given up after five",
  async (status) => {
    let asked = 0;
    const { bytes, error } = await fetched((_, response) => {
      asked += 1;
      response.writeHead(status).end();
    });
    expect([bytes.length, asked]).toEqual([0, 5]);
    expect(error).toMatchObject({ code: "unreachable" });
  },
);

test("answers that end early, with a byte or two each, bring the whole file in the end", async () => {
  const asked: number[] = [];
  const { bytes, error } = await fetched(({ headers }, response) => {
    const from = Number(/^bytes=([0-9]+)-$/.exec(headers.range ?? "")?.[1]);
    asked.push(from);
    response.writeHead(206).end(FILE.subarray(from, from + 5));
  });
  expect([bytes.equals(FILE), error, asked]).toEqual([true, undefined, [0, 5, 10, 15]]);
});

test("what is longer than its manifest says is refused before it fills a disk", async () => {
  const { bytes, error } = await fetched((_, response) => {
    response.writeHead(200);
    response.on("error", () => undefined);
    const more = (): void => {
      while (!response.destroyed && response.write(FILE));
    };
    response.on("drain", more);
    more();
  });
  expect(bytes.length).toBeLessThanOrEqual(FILE.length);
  expect(error).toMatchObject({ code: "not-whole" });
});
