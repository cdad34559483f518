/** A way to a service on which the network breaks, where a test says so. */
import { once } from "node:events";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface Cutting {
  url: string;
  /** Of requests for files, their `Range` in the order in which they came. */
  ranges: (string | undefined)[];
  /** Whether the answer to this request for a file, from 1 on, goes no further than 1,000 bytes: broken off, or silent. */
  cut: (number: number) => "broken" | "silent" | undefined;
  close(): Promise<void>;
}

const PASSED_BYTES = 1_000;

export async function startCutting(service: string): Promise<Cutting> {
  const cutting: Pick<Cutting, "ranges" | "cut"> = { ranges: [], cut: () => undefined };
  const server = createServer((incoming, response) => {
    const { headers, method, url = "" } = incoming;
    const isFile = url.endsWith("/file");
    if (isFile) cutting.ranges.push(headers.range);
    const cut = isFile ? cutting.cut(cutting.ranges.length) : undefined;
    const onward = request(new URL(url, service), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      if (cut === undefined) return void answer.pipe(response);
      answer.once("data", (chunk: Buffer) => {
        response.write(chunk.subarray(0, PASSED_BYTES), () => {
          if (cut === "broken") response.destroy();
        });
        answer.destroy();
      });
    });
    onward.on("error", () => response.destroy());
    incoming.pipe(onward);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return Object.assign(cutting, {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  });
}
