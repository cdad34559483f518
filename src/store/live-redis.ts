/**
 * Live usage in Redis 6 or newer, a single server or a Cluster: one call of one script per namespace. What is
 * not answered in time, or cannot be sent at once, fails: there is another place to ask.
 */
import { createHash } from "node:crypto";
import { lookup } from "node:dns";
import { Cluster, Redis, type RedisOptions, ReplyError } from "ioredis";
import type { Answer, Call, Command, LiveStore, NamespaceKey } from "../core/quota/live.ts";
import { readReply, writeCommand } from "./live-reply.ts";
import { BODY_WANTED, LIVE_SCRIPT } from "./live-script.ts";
import { sendTurn, writeCall } from "./live-turn.ts";
import { slotOf } from "./redis-slot.ts";

export type RedisPlace =
  | { kind: "single"; url: string }
  | { kind: "cluster"; urls: readonly string[] };

export interface RedisStore extends LiveStore {
  /** As `run` of each, all at once: with an Error in place of each answer that failed. */
  runAll(calls: readonly Call[]): Promise<(Answer | Error)[]>;
  /** The server that answers for the namespace: what one cannot do, another still can. Empty in a Cluster: none does. */
  part(key: NamespaceKey): string;
  /** All servers that answer for anything now: who was replaced is none of them any more. */
  parts(): readonly string[];
  /** The namespaces of one server; of a server that is no part, none. */
  walk(part?: string): AsyncIterable<readonly NamespaceKey[]>;
  connected(): boolean;
  /** After a call failed: whether its server answers others, so that it was one namespace's own matter. */
  isWell(part: string, error: unknown): Promise<boolean>;
}

/** Of one decision, with all that a client tries again. */
const ANSWER_MS_MAX = 250;
/** Of what reads all of a namespace, or says a lot of it: nobody waits for it who decides. */
const WHOLE_MS_MAX = 2_000;
/** Asks that are a lot. */
const ASKS_MAX = 1_000;
const CONNECT_MS_MAX = 1_000;
const RECONNECT_MS_MAX = 500;
const SCAN_COUNT = 500;
const PREFIX = "minutebook:quota:";
const SHA = createHash("sha1").update(LIVE_SCRIPT).digest("hex");

/** Nothing waits for a connection or is sent twice: a late answer is worse than the process' own. */
const SETTINGS = {
  connectionName: "minutebook",
  connectTimeout: CONNECT_MS_MAX,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  // A server that was made a replica says so: its name may lead to the new master by now.
  reconnectOnError: (error: Error) => error.message.startsWith("READONLY"),
} satisfies RedisOptions;

/**
 * Waits for the first connection for a second at most; goes on trying without end if there is none.
 * @param options.refused is told why there is none: calls say only that
 */
export async function openLiveRedis(
  place: RedisPlace,
  options: { answerMsMax?: number; refused?: (error: unknown) => void } = {},
): Promise<RedisStore> {
  const { refused = () => undefined } = options;
  const client = connectRedis(place, refused);
  const answerMsMax = options.answerMsMax ?? ANSWER_MS_MAX;
  // Of a Cluster it sums up what is said of each node.
  client.on("error", client instanceof Cluster ? () => undefined : refused);
  client.on("node error", refused);
  const isReady = new Promise<void>((ready) => client.once("ready", () => ready()));
  await inTime(isReady, CONNECT_MS_MAX).catch(() => undefined);
  const masters = (): ReadonlyMap<string, Redis> =>
    client instanceof Cluster
      ? new Map(client.nodes("master").map((node) => [partOf(node), node]))
      : new Map([["", client]]);
  const whole = apart(client, Math.max(answerMsMax, WHOLE_MS_MAX));
  const usual =
    client instanceof Cluster ? apart(client, answerMsMax) : together(client, answerMsMax);
  const runAll: RedisStore["runAll"] = (calls) =>
    runWith(calls.some(isWhole) ? whole : usual, calls);
  return {
    run: async (key, command) => {
      const [answer] = await runAll([{ key, command }]);
      if (answer === undefined || answer instanceof Error) throw answer;
      return answer;
    },
    runAll,
    walk: async function* (part) {
      for (const [name, master] of masters()) {
        if (part === undefined || part === name) yield* walk(master, answerMsMax);
      }
    },
    parts: () => [...masters().keys()],
    part: (key) =>
      client instanceof Cluster ? (client.slots[slotOf(nameOf(key))]?.[0] ?? "") : "",
    connected: () => client.status === "ready",
    isWell: async (part, error) => {
      // A fault of a script has this word; all others are what the server says of itself.
      if (error instanceof Error && error instanceof ReplyError)
        return error.message.startsWith("ERR ");
      const ping = masters().get(part)?.ping() ?? Promise.reject(error);
      return await inTime(ping, answerMsMax).then(
        () => true,
        () => false,
      );
    },
    close: async () => client.disconnect(),
  };
}

export function connectRedis(
  place: RedisPlace,
  refused: (error: unknown) => void,
): Redis | Cluster {
  const again = (times: number): number => Math.min(50 * times, RECONNECT_MS_MAX);
  if (place.kind === "single") {
    return new Redis(place.url, { ...SETTINGS, enableOfflineQueue: false, retryStrategy: again });
  }
  const urls = place.urls.map((url) => new URL(url));
  const [first] = urls;
  const secret = {
    ...(first?.username && { username: decodeURIComponent(first.username) }),
    ...(first?.password && { password: decodeURIComponent(first.password) }),
    ...(first?.protocol === "rediss:" && { tls: {} }),
  };
  const nodes = urls.map(({ hostname, port }) => {
    return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 6379) };
  });
  return new Cluster(nodes, {
    redisOptions: { ...SETTINGS, ...secret },
    enableOfflineQueue: false,
    // Else nobody would hear of a name that there is not.
    dnsLookup: (host, found) =>
      lookup(host, (error, address, family) => {
        if (error !== null) refused(error);
        found(error, address, family);
      }),
    clusterRetryStrategy: again,
    // A replica that took over is found within one of these.
    slotsRefreshInterval: 1_000,
    maxRedirections: 3,
    retryDelayOnFailover: 50,
    retryDelayOnClusterDown: 50,
  });
}

function isWhole({ command }: Call): boolean {
  const { asks, inspect, looked, recount } = command;
  return inspect === true || recount === true || looked !== undefined || asks.length >= ASKS_MAX;
}

/** The script of one namespace. */
interface Script {
  name: string;
  args: readonly string[];
}

/** Each reply in its place, or an Error. */
type Evaluate = (scripts: readonly Script[]) => Promise<unknown[]>;

async function runWith(evaluate: Evaluate, calls: readonly Call[]): Promise<(Answer | Error)[]> {
  const replies = await evaluate(calls.map((call) => scriptOf(call, { withBody: false })));
  const wanting = calls.filter((_, i) => replies[i] === BODY_WANTED);
  if (wanting.length > 0) {
    const others = await evaluate(wanting.map((call) => scriptOf(call, { withBody: true })));
    for (const [i, reply] of replies.entries()) {
      if (reply === BODY_WANTED) replies[i] = others.shift();
    }
  }
  return calls.map(({ command }, i) => answerOf(command, replies[i]));
}

function answerOf(command: Command, reply: unknown): Answer | Error {
  if (reply instanceof Error) return reply;
  try {
    return readReply(command, reply);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function scriptOf({ key, command }: Call, options: { withBody: boolean }): Script {
  return { name: nameOf(key), args: writeCommand(command, options) };
}

/** Each command by itself, which goes to wherever its namespace is kept. */
function apart(client: Redis | Cluster, msMax: number): Evaluate {
  const evaluate = async ({ name, args }: Script): Promise<unknown> => {
    try {
      return await inTime(client.evalsha(SHA, 1, name, ...args), msMax);
    } catch (error) {
      return isUntaught(error) ? await teach(client, msMax, { name, args }) : error;
    }
  };
  return (scripts) => Promise.all(scripts.map(evaluate));
}

/** A server that was started anew, or took over, does not know the script. */
function isUntaught(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith("NOSCRIPT");
}

function teach(client: Redis | Cluster, msMax: number, { name, args }: Script): Promise<unknown> {
  return inTime(client.eval(LIVE_SCRIPT, 1, name, ...args), msMax).catch((error) => error);
}

/** Of a single server, all that is asked in one turn goes out together: that is what takes time here. */
function together(client: Redis, msMax: number): Evaluate {
  let turn: { calls: string[]; replies: Promise<unknown[]> } | undefined;
  const begin = (): NonNullable<typeof turn> => {
    const calls: string[] = [];
    const replies = new Promise<void>((resolve) => process.nextTick(resolve)).then(() => {
      turn = undefined;
      return inTime(sendTurn(client, calls), msMax);
    });
    return { calls, replies };
  };
  return async (scripts) => {
    turn ??= begin();
    const from = turn.calls.length;
    for (const { name, args } of scripts) turn.calls.push(writeCall(SHA, name, args));
    const all = await turn.replies.catch((error: unknown) => error);
    if (!Array.isArray(all)) return scripts.map(() => all);
    const replies = all.slice(from, from + scripts.length);
    if (!replies.some(isUntaught)) return replies;
    return await Promise.all(
      scripts.map((script, i) =>
        isUntaught(replies[i]) ? teach(client, msMax, script) : replies[i],
      ),
    );
  };
}

/** As the slots of a Cluster name it. */
function partOf({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}

async function* walk(master: Redis, answerMsMax: number): AsyncIterable<readonly NamespaceKey[]> {
  let cursor = "0";
  do {
    const scan = master.scan(cursor, "MATCH", `${PREFIX}{*}`, "COUNT", SCAN_COUNT);
    const [next, names] = await inTime(scan, answerMsMax);
    yield names.map(keyOf);
    cursor = next;
  } while (cursor !== "0");
}

/** @throws Error when there is no answer in time; the command may be carried out all the same */
function inTime<T>(answer: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    // If it was this process that stood still, the answer may be there already, and is read before the reject.
    const late = (): unknown => setImmediate(reject, new Error("redis: no answer in time"));
    const timer = setTimeout(late, ms);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function nameOf({ log, namespace }: NamespaceKey): string {
  return `${PREFIX}{${log}:${namespace}}`;
}

function keyOf(name: string): NamespaceKey {
  const [log = "", namespace = ""] = name.slice(PREFIX.length + 1, -1).split(":");
  return { log, namespace };
}
