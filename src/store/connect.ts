/**
 * The one way to open a PostgreSQL connection: the same types, time limits and socket for everybody.
 */
import net from "node:net";
import postgres from "postgres";

/** int8 ↔ bigint: an index or an id passes 2^53, and a rounded one is another one. */
const bigint = {
  to: 20,
  from: [20],
  serialize: (value: bigint) => value.toString(),
  parse: (text: string) => BigInt(text),
};

/** date ↔ `YYYY-MM-DD`: a day has no time zone, a JavaScript Date has nothing else. */
const day = {
  to: 1082,
  from: [1082],
  serialize: (value: string) => value,
  parse: (text: string) => text,
};

/**
 * bytea ↔ Uint8Array, and no Buffer: `slice` of a Buffer shares its memory, and core, which knows
 * only Uint8Array, slices to copy.
 */
const bytes = {
  to: 17,
  from: [17],
  serialize: (value: Uint8Array) => `\\x${Buffer.from(value).toString("hex")}`,
  parse: (text: string): Uint8Array => new Uint8Array(Buffer.from(text.slice(2), "hex")),
};

const types = { bigint, day, bytes };

/** What our parsers and serialisers add to the parameters that postgres.js knows by itself. */
type Types = {
  bigint: bigint;
  day: string;
  bytes: Uint8Array;
};

/**
 * A pool. int8 comes as bigint, numeric as its decimal string, bytea as Uint8Array, date as
 * `YYYY-MM-DD`, timestamptz as Date (milliseconds: what needs more asks for text).
 */
export type Sql = postgres.Sql<Types>;

/** What `sql.begin` hands to its callback. */
export type Transaction = postgres.TransactionSql<Types>;

/** Time limits of a session, in milliseconds; 0 is none. */
export interface Limits {
  /** One statement. */
  statement?: number;
  /** Waiting for one lock. */
  lock?: number;
  /** Between two statements of one transaction: how long a stalled process may hold its locks. */
  idle?: number;
}

/** A server that takes the connection and says nothing is as good as away. */
const CONNECT_SECONDS = 10;

const LIMITS: Required<Limits> = { statement: 60_000, lock: 10_000, idle: 10_000 };

/**
 * Opens a pool; connections are made when first used.
 *
 * @param url `postgres://user:password@host:port/database`; several hosts are tried in turn
 * @param options.max connections at most, 10 if not said
 * @param options.name application_name, as seen in pg_stat_activity
 */
export function connect(
  url: string,
  options: { max?: number; name?: string; limits?: Limits } = {},
): Sql {
  const limits = { ...LIMITS, ...options.limits };
  // A variable, not a literal in the call: the types of postgres.js do not know `socket`.
  const settings = {
    types,
    max: options.max ?? 10,
    onnotice: () => undefined,
    connect_timeout: CONNECT_SECONDS,
    backoff: rest,
    socket: dialler(),
    connection: {
      application_name: options.name ?? "minutebook",
      statement_timeout: limits.statement,
      lock_timeout: limits.lock,
      idle_in_transaction_session_timeout: limits.idle,
    },
  };
  return postgres(url, settings);
}

/**
 * Rest before a pool tries to connect again, in seconds: longer with each failure in a row. postgres.js itself
 * goes up to 20, and whoever asks meanwhile waits for that, also when the server has long been back.
 *
 * @param failures 1 after the first
 */
function rest(failures: number): number {
  return Math.min(3 ** failures / 100, 1) * (0.5 + Math.random() / 2);
}

/** What postgres.js made of the URL and hands to `socket`. */
interface Target {
  host: string[];
  port: number[];
  path: string | false;
}

/**
 * Sockets without Nagle's delay: with it each COPY over TCP waits 80 ms, twice for an
 * acknowledgement that the other side holds back. `host` on the socket is what TLS then verifies.
 */
function dialler(): (target: Target) => net.Socket {
  let turn = 0;
  return ({ host, port, path }) => {
    if (path !== false) return new Line().connect({ path });
    const index = turn++ % host.length;
    const name = host[index] ?? "localhost";
    const line = new Line().setNoDelay().connect({ host: name, port: port[index] ?? 5432 });
    return Object.assign(line, { host: name });
  };
}

/**
 * Closed, it is an error to whoever waits for an answer on it. postgres.js 3.4.9 keeps the query that a connection
 * died with: refused on that connection's next attempt, it takes the refusal for that query's, tries again at once,
 * and the one that waits hears nothing for as long as the server refuses.
 *
 * Not told at the server's end already: what is asked in answer to that, a rollback above all, postgres.js would
 * neither send nor forget, and all that the connection says later, its log-in too, would wait behind it.
 */
class Line extends net.Socket {
  constructor() {
    super();
    this.once("close", this.#tell);
    // What is said first is said in the same turn.
    setImmediate(() => setImmediate(() => this.#hangUpIfMute()));
  }

  /**
   * Bytes that waited when the former connection closed still wait: postgres.js 3.4.9 forgets to send them, and what
   * it says here, its log-in, waits behind them until there is a kilobyte of it. Whoever waits is told: a query that
   * was left over from the former connection would be answered by nothing, as if it had found no row.
   */
  #hangUpIfMute(): void {
    if (this.bytesWritten === 0) this.destroy();
  }

  /** To put TLS over this, postgres.js takes all listeners away; this closes before what lies over it. */
  override removeAllListeners(): this {
    const told = this.listeners("error");
    super.removeAllListeners();
    for (const listener of told) this.on("error", (error) => listener(error));
    return this.once("close", this.#tell);
  }

  #tell(): void {
    const closed = new Error("the connection was closed");
    this.emit("error", Object.assign(closed, { code: "CONNECTION_CLOSED" }));
  }
}
