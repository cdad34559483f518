import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect } from "node:net";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { eventually } from "../eventually.ts";
import { Pair } from "./pair.ts";

let pair: Pair;

beforeEach(async () => {
  pair = new Pair();
  await pair.open();
});

afterEach(() => pair.close());

test("artifacts of any size pass both ways unchanged", async () => {
  const piece = randomBytes(1024 * 1024);
  const pieces = 48;
  const digest = createHash("sha256");
  for (let i = 0; i < pieces; i++) digest.update(piece);
  const expected = digest.digest("hex");
  pair.act = (incoming, response) => {
    const uploaded = createHash("sha256");
    incoming.on("data", (chunk) => uploaded.update(chunk));
    incoming.on("end", () => {
      response.setHeader("X-Digest", uploaded.digest("hex"));
      Readable.from(Array(pieces).fill(piece)).pipe(response);
    });
  };
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const outgoing = request({ port: pair.port, method: "POST", path: "/upload" });
    outgoing.on("response", resolve);
    outgoing.on("error", reject);
    Readable.from(Array(pieces).fill(piece)).pipe(outgoing);
  });
  const downloaded = createHash("sha256");
  for await (const chunk of answer) downloaded.update(chunk);
  expect(answer.headers["x-digest"]).toBe(expected);
  expect(downloaded.digest("hex")).toBe(expected);
});

test("a reader that stops reading stops the sender", async () => {
  let written = 0;
  let isHeldUp = false;
  pair.act = (_, response) => {
    const piece = Buffer.alloc(64 * 1024);
    const write = (): void => {
      while (response.write(piece)) written += piece.length;
      written += piece.length;
      isHeldUp = true;
    };
    response.on("drain", write);
    write();
  };
  const socket = connect(pair.port, "127.0.0.1");
  socket.pause();
  socket.write("GET / HTTP/1.1\r\nHost: relay\r\n\r\n");
  await eventually(() => expect(isHeldUp).toBe(true));
  let last = -1;
  await vi.waitFor(
    () => {
      const now = written;
      const grew = now !== last;
      last = now;
      expect(grew).toBe(false);
    },
    { interval: 200, timeout: 10_000 },
  );
  expect(written).toBeLessThan(64 * 1024 * 1024);
  socket.destroy();
});

test("an answer begins when GitLab begins it, long before it ends", async () => {
  let finish: () => void = () => undefined;
  pair.act = (_, response) => {
    response.writeHead(200);
    response.flushHeaders();
    finish = () => response.end("late");
  };
  const outgoing = request({ port: pair.port, path: "/long-poll" }).end();
  const [answer] = await once(outgoing, "response");
  finish();
  expect(await text(answer)).toBe("late");
});

test("100-continue is GitLab's to give: a body that it does not want is never sent", async () => {
  pair.gitlab.on("checkContinue", (incoming: IncomingMessage, response: ServerResponse) => {
    if (incoming.url === "/no") {
      response.writeHead(413, { Connection: "close" }).end();
      return;
    }
    response.writeContinue();
    buffer(incoming).then(
      (body) => response.end(String(body.length)),
      () => response.destroy(),
    );
  });
  const ask = (path: string): ReturnType<typeof request> => {
    const headers = { Expect: "100-continue", "Content-Length": 5 };
    const outgoing = request({ port: pair.port, method: "PUT", path, headers });
    outgoing.on("continue", () => outgoing.end("hello"));
    outgoing.flushHeaders();
    return outgoing;
  };
  const [yes] = await once(ask("/yes"), "response");
  expect(await text(yes)).toBe("5");
  const unwanted = ask("/no");
  const [no] = await once(unwanted, "response");
  expect(no.statusCode).toBe(413);
  unwanted.destroy();
});

test("whoever goes away while GitLab is busy is waited for by nobody", async () => {
  let isGone = false;
  pair.act = (_, response) => {
    response.on("close", () => {
      isGone = true;
    });
  };
  const asked = once(pair.gitlab, "request");
  const outgoing = request({ port: pair.port, path: "/" }).end();
  outgoing.on("error", () => undefined);
  await asked;
  outgoing.destroy();
  await eventually(() => expect(isGone).toBe(true));
});

test("an upload that breaks off breaks off at GitLab, and is not taken for a whole one", async () => {
  let isComplete: boolean | undefined;
  pair.act = (incoming) => {
    incoming.resume().on("close", () => {
      isComplete = incoming.complete;
    });
    incoming.on("error", () => undefined);
  };
  const asked = once(pair.gitlab, "request");
  const outgoing = request({ port: pair.port, method: "POST", path: "/" });
  outgoing.on("error", () => undefined);
  outgoing.write("part");
  await asked;
  outgoing.destroy();
  await eventually(() => expect(isComplete).toBe(false));
});

test("a download that breaks off at GitLab is not taken for a whole one", async () => {
  pair.act = (_, response) => {
    response.write("part", () => response.destroy());
  };
  const outgoing = request({ port: pair.port, path: "/" }).end();
  const [answer] = await once(outgoing, "response");
  await expect(text(answer)).rejects.toThrow("aborted");
});
