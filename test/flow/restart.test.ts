/** The database server dies, comes back, or comes back as it was: the same door, never half an answer. */
import { execFile } from "node:child_process";
import net from "node:net";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type Embedded, startPostgres } from "../../src/embedded.ts";
import { connect, type Sql } from "../../src/store/connect.ts";
import { CARD } from "../core/history.ts";
import { startCluster } from "../postgres.ts";
import {
  codes,
  type Door,
  entriesOf,
  newAgent,
  newLog,
  ofKind,
  openDoor,
  reported,
} from "./door.ts";
import { replay } from "./replay.ts";

const run = promisify(execFile);

/** One address for a server that has another port at each start; refused while there is none. */
class Gateway {
  port = 0;
  #to = 0;
  readonly #server = net.createServer((socket) => {
    const onward = net.connect({ host: "127.0.0.1", port: this.#to });
    socket.pipe(onward).pipe(socket);
    for (const [one, other] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      one.on("error", () => other.destroy()).on("close", () => other.destroy());
    }
  });

  async open(to: number): Promise<void> {
    this.#to = to;
    await new Promise<void>((resolve) => this.#server.listen(this.port, "127.0.0.1", resolve));
    const address = this.#server.address();
    if (typeof address === "object" && address !== null) this.port = address.port;
  }

  close(): void {
    this.#server.close();
  }
}

const gateway = new Gateway();
const pools: Sql[] = [];
let doors: Door[] = [];
let folder: string;
let server: Embedded;
let remove: () => Promise<void>;
let address: string;

beforeAll(async () => {
  const cluster = await startCluster();
  ({ embedded: server, folder, remove } = cluster);
  const url = new URL(server.urls.writer);
  await gateway.open(server.port);
  url.port = String(gateway.port);
  address = url.href;
});

beforeEach(async () => {
  const { stdout } = await run("mktemp", ["-d"]);
  const archive = stdout.trim();
  doors = ["one", "two"].map((seed) => {
    const sql = connect(address, { max: 2, name: seed });
    pools.push(sql);
    return openDoor(sql, { archive, seed: `${seed} ${archive}` });
  });
});

afterEach(async () => {
  await Promise.all(doors.map((door) => door.close()));
  await Promise.all(pools.splice(0).map((sql) => sql.end({ timeout: 1 })));
});

afterAll(async () => {
  gateway.close();
  await server.stop();
  await remove();
});

async function start(): Promise<void> {
  server = await startPostgres({ folder });
  await gateway.open(server.port);
}

async function stop(how: "stop" | "kill9"): Promise<void> {
  gateway.close();
  await server[how]();
}

function twoDoors(): [Door, Door] {
  const [one, two] = doors;
  if (one === undefined || two === undefined) throw new Error("no doors");
  return [one, two];
}

test("a server killed in the middle costs answers, never entries: all that was accepted is there, and the rest is accepted when it is back", async () => {
  const [door] = twoDoors();
  const log = await newLog(door, "killed server");
  await newAgent(door, log, 1);
  const texts = Array.from({ length: 60 }, (_, n) =>
    reported(1, log, { counter: String(n + 1), job: { id: String(n) } }),
  );
  const first = await Promise.allSettled(
    texts.slice(0, 40).map(async (text, n) => {
      if (n === 20) await stop("kill9");
      return await door.submit(text);
    }),
  );
  const answered = first.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  for (const each of first) {
    if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "busy" });
  }
  await expect(door.submit(texts[50] ?? "")).rejects.toMatchObject({ code: "busy" });
  await start();
  const { results } = await door.submit(...texts);
  expect(results.map(({ code }) => code)).toEqual(texts.map(() => "accepted"));
  const again = new Set(results.map(({ digest, index }) => `${digest} ${index}`));
  const told = answered.flatMap((each) => each.results.map((r) => `${r.digest} ${r.index}`));
  expect(told.filter((answer) => !again.has(answer))).toEqual([]);
  const reader = connect(server.urls.reader, { max: 1 });
  const entries = await entriesOf(reader, log);
  await reader.end();
  replay(entries);
  expect(ofKind(entries, "usage")).toHaveLength(60);
});

test("a database that comes back without its last entries is judged by what it holds now, not by what a process remembers", async () => {
  const [door, other] = twoDoors();
  const log = await newLog(door, "restored", { card: "none" });
  await newAgent(door, log, 1);
  await stop("stop");
  const backup = `${server.data}.backup`;
  await run("cp", ["-a", server.data, backup]);
  await start();
  // At the same index as the lost card stands another one later.
  await door.appender.control(log, "rate_card", () => CARD);
  await door.submit(reported(1, log, { counter: "1", job: { id: "1" } }));
  await stop("stop");
  await run("rm", ["-r", server.data]);
  await run("mv", [backup, server.data]);
  await start();
  const dearer = { ...CARD, runner_factors: { small: "7" } };
  await other.appender.control(log, "rate_card", () => dearer);
  const found = await door.submit(reported(1, log, { counter: "2", job: { id: "2" } }));
  expect(codes(found)).toEqual(["accepted"]);
  const reader = connect(server.urls.reader, { max: 1 });
  const entries = await entriesOf(reader, log);
  await reader.end();
  replay(entries);
  expect(ofKind(entries, "usage").map(({ body }) => body.factor)).toEqual(["7/1"]);
});
