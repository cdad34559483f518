import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, statSync, unlinkSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, expect, test } from "vitest";
import { verifyNow } from "../../audit/native.ts";
import type { Answer, Witnessing } from "../../audit/witness/answer.ts";
import { startWitness, type WitnessServer } from "../../audit/witness/server.ts";
import { nameOf } from "../../audit/witness/store.ts";
import { parseCheckpoint } from "../../src/core/checkpoint.ts";
import { linesOf, openNote, signNote } from "../../src/core/note.ts";
import { parsePolicy } from "../../src/core/policy.ts";
import { decodeUtf8, encodeUtf8 } from "../../src/core/text.ts";
import { compiled } from "../compile.ts";
import { testKey } from "../signing.ts";
import { checkpointOf, signer, vkey, vkeyText } from "./archive.ts";
import { command, openHome } from "./command.ts";
import { LOG_ID, OTHER_LOG_ID } from "./log.ts";
import {
  expectCosigned,
  FORK,
  LOG,
  ORIGIN,
  request,
  WITNESS_KEY,
  witnessing,
} from "./witnessing.ts";

const home = openHome();
afterAll(() => home.remove());
let folders = 0;
let folder = "";
beforeEach(() => {
  folder = join(home.folder, String(folders++));
  mkdirSync(folder);
});
const servers: WitnessServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(options: Witnessing = witnessing(folder)): Promise<string> {
  const errors: unknown[] = [];
  const onError = (error: unknown): number => errors.push(error);
  const server = await startWitness({ ...options, host: "127.0.0.1", port: 0, onError });
  servers.push(server);
  return server.url;
}

async function post(url: string, body: Uint8Array | string): Promise<Answer> {
  const response = await fetch(`${url}/add-checkpoint`, { method: "POST", body });
  const type = response.headers.get("content-type") ?? "";
  return { status: response.status, body: await response.text(), type };
}

test("a log that only grows is cosigned, and shown at its monitoring address", async () => {
  const url = await serve();
  const monitor = `${url}/${nameOf(ORIGIN)}/checkpoint`;
  expect((await fetch(monitor)).status).toBe(404);
  expectCosigned(await post(url, request(LOG, 0, 7)), 7);
  expectCosigned(await post(url, request(LOG, 7, 40)), 40);
  const shown = await fetch(monitor);
  expect(shown.headers.get("content-type")).toBe("text/plain; charset=utf-8");
  const opened = openNote(await shown.text(), [vkey(), WITNESS_KEY], verifyNow);
  if ("problem" in opened) throw new Error(opened.problem);
  expect(parseCheckpoint(opened.text)?.size).toBe(40n);
  expect(opened.signatures.map(({ vkey: key }) => key.name)).toEqual([ORIGIN, "witness.test"]);
});

test("every refusal has the status and the body that the specification gives it", async () => {
  const url = await serve();
  await post(url, request(LOG, 0, 7));
  const plain = "text/plain; charset=utf-8";
  const status = async (body: Uint8Array | string): Promise<[number, string]> => {
    const answer = await post(url, body);
    return [answer.status, answer.type];
  };
  expect(await post(url, request(LOG, 0, 40))).toEqual({
    status: 409,
    body: "7\n",
    type: "text/x.tlog.size",
  });
  expect(await status("hello")).toEqual([400, plain]);
  expect(await status(Uint8Array.of(0xff))).toEqual([400, plain]);
  expect(await status("old 07\n\nx\n")).toEqual([400, plain]);
  const smaller = decodeUtf8(request(LOG, 0, 6))?.replace("old 0", "old 7") ?? "";
  expect(await status(smaller)).toEqual([400, plain]);
  expect(await status(request(FORK, 7, 40))).toEqual([200, plain]);
  expect(await status(request(LOG, 40, 40))).toEqual([422, plain]);
  const stranger = checkpointOf(LOG, 40, undefined, [signer(LOG_ID, testKey(9))]);
  expect(await status(`old 40\n\n${decodeUtf8(stranger)}`)).toEqual([403, plain]);
  const other = signNote(
    `test/${OTHER_LOG_ID}\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n`,
    [signer(OTHER_LOG_ID)],
  );
  expect(await status(`old 0\n\n${other}`)).toEqual([404, plain]);
  expect(await status("x".repeat(65_537))).toEqual([413, plain]);
});

test("what cannot be kept is not signed, and the caller is told no more", async () => {
  const url = await serve();
  await post(url, request(LOG, 0, 7));
  writeFileSync(join(folder, nameOf(ORIGIN), "1"), "");
  expect(await post(url, request(LOG, 7, 7))).toMatchObject({ status: 500, body: "failed\n" });
});

test("other addresses and methods are not there", async () => {
  const url = await serve();
  const status = async (method: string, path: string): Promise<number> =>
    (await fetch(`${url}${path}`, { method })).status;
  expect(await status("GET", "/add-checkpoint")).toBe(405);
  expect(await status("POST", `/${nameOf(ORIGIN)}/checkpoint`)).toBe(405);
  for (const path of ["/", "/x", `/${nameOf("other")}/checkpoint`, `/${nameOf(ORIGIN)}`]) {
    expect([path, await status("GET", path)]).toEqual([path, 404]);
  }
});

test("a body that is announced too long, or never ends, is not waited for", async () => {
  const { hostname, port } = new URL(await serve());
  const socket = connect(Number(port), hostname);
  socket.write("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nTransfer-Encoding: chunked\r\n\r\n");
  socket.write(`20000\r\n${"x".repeat(0x20000)}\r\n`);
  const [answer] = await once(socket, "data");
  expect(String(answer)).toMatch(/^HTTP\/1\.1 413 /);
  socket.destroy();
});

test("it closes though somebody holds a connection, and answers what was under way", async () => {
  const { hostname, port } = new URL(await serve());
  const body = request(LOG, 0, 7);
  const open = async (): Promise<Socket> => {
    const socket = connect(Number(port), hostname).on("error", () => {}); // it is cut off
    await once(socket, "connect");
    return socket;
  };
  /** In a request that the witness has begun to read. */
  const ask = async (): Promise<Socket> => {
    const socket = await open();
    socket.write(`POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: ${body.length}\r\n`);
    socket.write("Expect: 100-continue\r\n\r\n");
    expect(String((await once(socket, "data"))[0])).toContain("100 Continue");
    return socket;
  };
  const [silent, stuck, honest] = [await open(), await ask(), await ask()];
  const ends = [silent, stuck].map(
    (socket) => new Promise((ended) => socket.resume().once("close", ended)),
  );
  const closed = servers.splice(0)[0]?.close();
  honest.write(body);
  expect(String((await once(honest, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
  await Promise.all([closed, ...ends]);
});

test("the same checkpoint again is cosigned again", async () => {
  const url = await serve();
  await post(url, request(LOG, 0, 7));
  expectCosigned(await post(url, request(LOG, 7, 7)), 7);
});

test("many requests at once, at two witnesses on one folder, never get two truths", async () => {
  const urls = [await serve(), await serve(witnessing(folder))];
  for (const old of [0, 7]) {
    const asks = Array.from({ length: 40 }, (_, i) => {
      const log = i % 3 === 0 ? FORK : LOG;
      return post(urls[i % 2] ?? "", request(log, old, old === 0 ? 7 : 20 + (i % 5)));
    });
    const answers = await Promise.all(asks);
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([200, ...Array.from({ length: 39 }, () => 409)]);
  }
  // What stands is one of the two logs, and all that follows must follow from it.
  const last = await (await fetch(`${urls[0]}/${nameOf(ORIGIN)}/checkpoint`)).text();
  const size = Number(parseCheckpoint(linesOf(last)?.text ?? "")?.size);
  const isFork = last.startsWith(linesOf(decodeUtf8(checkpointOf(FORK, size)) ?? "")?.text ?? "");
  const [own, other] = isFork ? [FORK, LOG] : [LOG, FORK];
  expect((await post(urls[1] ?? "", request(other, size, 40))).status).toBe(422);
  expectCosigned(await post(urls[1] ?? "", request(own, size, 40)), 40, own);
});

const NAMED = ["--name", "witness.test"];

test("its key is made once, for its owner alone, and its vkey is a policy's", async () => {
  const key = join(folder, "witness.pem");
  const made = await command("witness", "--make-key", "--key", key, ...NAMED);
  expect(made.exit).toBe(0);
  expect(statSync(key).mode & 0o777).toBe(0o600);
  const policy = parsePolicy(`witness own ${made.out.trim()}\nquorum own\n`);
  expect(policy).toMatchObject({ witnesses: [{ name: "own" }] });
  const before = readFileSync(key, "utf8");
  expect((await command("witness", "--make-key", "--key", key, ...NAMED)).exit).toBe(2);
  expect(readFileSync(key, "utf8")).toBe(before);
  const odd = ["witness", "--make-key", "--key", join(folder, "b"), "--name", "a b"];
  expect(await command(...odd)).toMatchObject({ exit: 2, err: expect.stringContaining("no name") });
});

test("without log, memory, or a key of its own it does not start", async () => {
  const key = join(folder, "witness.pem");
  await command("witness", "--make-key", "--key", key, ...NAMED);
  const [log, state] = [
    ["--log", vkeyText()],
    ["--state", folder],
  ];
  const start = ["witness", ...NAMED, "--port", "0"];
  expect((await command(...start, "--key", key, ...(log ?? []))).exit).toBe(2);
  expect((await command(...start, "--key", key, ...(state ?? []))).exit).toBe(2);
  const open = join(folder, "open.pem");
  writeFileSync(open, readFileSync(key), { mode: 0o644 });
  const shared = await command(...start, "--key", open, ...(log ?? []), ...(state ?? []));
  expect(shared).toMatchObject({ exit: 2, err: expect.stringContaining("chmod 600") });
  unlinkSync(open);
  expect((await command(...start, "--port", "70000", "--key", key)).exit).toBe(2);
});

interface Program {
  url: string;
  said: string;
  /** Its status, once it has ended by itself. */
  stop(): Promise<number | null>;
}

async function startProgram(key: string): Promise<Program> {
  const cli = compiled(new URL("../../audit/cli.ts", import.meta.url));
  const args = ["witness", "--key", key, ...NAMED, "--state", folder, "--log", vkeyText()];
  const child = spawn(process.execPath, [cli, ...args, "--port", "0"]);
  let said = "";
  const url = await new Promise<string>((listening) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const [, address] = /listening on (\S+)/.exec(said) ?? [];
      if (address !== undefined) listening(address);
    });
  });
  const stop = async (): Promise<number | null> => {
    child.kill("SIGTERM");
    const [status] = await once(child, "exit");
    return status;
  };
  return { url, said, stop };
}

test("the program says its vkey and address, cosigns, and ends when it is told to", async () => {
  const key = join(folder, "witness.pem");
  await command("witness", "--make-key", "--key", key, ...NAMED);
  const { said, stop, url } = await startProgram(key);
  expect(said).toMatch(/^witness witness\.test\+[0-9a-f]{8}\+\S+\nlog test\//);
  expect((await post(url, request(LOG, 0, 7))).status).toBe(200);
  expect((await post(url, encodeUtf8("?"))).status).toBe(400);
  expect(await stop()).toBe(0);
});

test("two processes on one folder, asked for two truths at once, sign one", async () => {
  const key = join(folder, "witness.pem");
  await command("witness", "--make-key", "--key", key, ...NAMED);
  const programs = [await startProgram(key), await startProgram(key)];
  let size = 7;
  await post(programs[0]?.url ?? "", request(LOG, 0, size));
  for (const next of [20, 30, 40]) {
    const asks = Array.from({ length: 30 }, (_, i) => {
      const log = i % 3 === 0 ? FORK : LOG;
      return post(programs[i % 2]?.url ?? "", request(log, size, next));
    });
    const statuses = (await Promise.all(asks)).map(({ status }) => status);
    const signed = statuses.flatMap((status, i) => (status === 200 ? [i % 3 === 0] : []));
    expect(new Set(signed).size).toBeLessThanOrEqual(1);
    expect(statuses.filter((status) => ![200, 409, 422].includes(status))).toEqual([]);
    if (signed.length > 0) size = next;
  }
  expect(size).toBe(40);
  for (const { stop } of programs) expect(await stop()).toBe(0);
});
