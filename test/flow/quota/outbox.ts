/** An outbox to be sent from, and a process that sends. */
import { encodeHex } from "../../../src/core/text.ts";
import {
  type Backlog,
  type Delivering,
  type DeliveryObserver,
  deliverLoop,
} from "../../../src/flow/quota/deliver.ts";
import type { WebhookError } from "../../../src/flow/quota/webhook.ts";
import type { Sql } from "../../../src/store/connect.ts";
import { insertNotifications } from "../../../src/store/notifications.ts";
import { random } from "./told.ts";

export const SECRET = new Uint8Array(32).fill(7);
const LOG = "b".repeat(32);

/** The next notifications of a namespace; their ids. */
export async function fill(sql: Sql, namespace: number, at: number, count = 1): Promise<string[]> {
  return await sql.begin(async (tx) => {
    const [row] = await tx<{ last: bigint | null }[]>`
      select max(number) as last from notifications where namespace_id = ${namespace}`;
    const told = Array.from({ length: count }, (_, i) => {
      const id = `evt_${encodeHex(random(16))}`;
      const number = (row?.last ?? 0n) + BigInt(i) + 1n;
      return { namespace: String(namespace), number, id, body: JSON.stringify({ namespace, i }) };
    });
    await insertNotifications(tx, LOG, at, told);
    return told.map(({ id }) => id);
  });
}

export async function stateOf(sql: Sql, id: string): Promise<string | undefined> {
  const [row] = await sql<{ state: string }[]>`select state from notifications where id = ${id}`;
  return row?.state;
}

/** One process, until it is stopped. */
export class Courier {
  readonly outcomes: string[] = [];
  readonly failures: unknown[] = [];
  /** At the last look. */
  backlog: Backlog | undefined;
  rounds = 0;
  readonly #abort = new AbortController();
  readonly #done: Promise<void>;

  constructor(delivering: Pick<Delivering, "sql" | "clock" | "webhook"> & Partial<Delivering>) {
    const observer: DeliveryObserver = {
      attempted: (outcome) => this.outcomes.push(outcome),
      failed: (error) => this.failures.push(error),
      roundEnded: (backlog) => {
        this.backlog = backlog ?? this.backlog;
        this.rounds += 1;
      },
    };
    const { signal } = this.#abort;
    this.#done = deliverLoop({ random, intervalMs: 1, observer, ...delivering, signal });
  }

  /** What went wrong, without repetition. */
  get reasons(): string[] {
    return [...new Set(this.failures.map((error) => (error as WebhookError).reason))];
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#done;
  }
}
