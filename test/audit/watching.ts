/** A log and a fork of it as servers and witnesses show them, until they are told to show something else. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { nameOf } from "../../audit/witness/store.ts";
import { type Files, filesOf } from "./archive.ts";
import { longLog } from "./honest.ts";
import { LOG_ID, type TestLog } from "./log.ts";
import { type Lie, serveFiles } from "./server.ts";

export const LOG = longLog(700);
export const FORK = forkAt(300, 700);
export const ORIGIN = `test/${LOG_ID}`;

/** The same log up to some entry, and from there on another truth, honestly signed. */
function forkAt(index: number, size: number): TestLog {
  const fork = longLog(index);
  while (fork.size < size) fork.force("conflict", { jws: "another truth", stands: "0" });
  return fork;
}

export interface Shown {
  url: string;
  /** From now on other files; the checkpoint is the largest of them. */
  show(next: Files): void;
  close(): Promise<void>;
}

/** An address of the log as it is at a size. */
export async function showLog(log: TestLog, size: number, lie?: Lie): Promise<Shown> {
  const files = filesOf(log, [size]);
  const { close, url } = await serveFiles(files, lie && { lie });
  const show = (next: Files): void => {
    files.clear();
    for (const [path, bytes] of next) files.set(path, bytes);
  };
  return { url, show, close };
}

/** A witness's monitoring address. */
export async function showWitness(
  note: () => Uint8Array | undefined,
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer((ask, answer) => {
    const known = ask.url === `/${nameOf(ORIGIN)}/checkpoint` ? note() : undefined;
    answer.writeHead(known === undefined ? 404 : 200, { "content-type": "text/plain" }).end(known);
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  };
}
