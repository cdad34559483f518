/**
 * Which servers of a Redis failed and are left alone for a moment: so that one that says nothing is waited
 * for once, and not by all who ask. Who was replaced is forgotten, since nobody asks it any more.
 */
import type { RedisStore } from "../../store/live-redis.ts";
import type { Clock } from "../clock.ts";

/** So long a server that failed is left alone. Then one call tries it, and the others do not wait for it. */
const RETRY_MS = 1_000;

type Servers = Pick<RedisStore, "connected" | "parts" | "walk">;

export class Breaker {
  readonly #redis: Servers;
  readonly #clock: Clock;
  readonly #failed: (error: unknown) => void;
  /** To when they are tried again. */
  readonly #away = new Map<string, number>();

  constructor(redis: Servers, options: { clock: Clock; failed: (error: unknown) => void }) {
    this.#redis = redis;
    this.#clock = options.clock;
    this.#failed = options.failed;
  }

  /** False: it is away. True to one caller after its time: the others need not wait for the trial. */
  mayTry(part: string): boolean {
    const retryAt = this.#away.get(part);
    if (retryAt === undefined) return true;
    const now = this.#clock.now();
    // In both directions: a clock that stepped back must not leave a server alone for as long.
    if (now < retryAt && retryAt - now <= RETRY_MS) return false;
    this.#away.set(part, now + RETRY_MS);
    return true;
  }

  answered(part: string): void {
    this.#away.delete(part);
  }

  broke(part: string, error: unknown): void {
    this.#away.set(part, this.#clock.now() + RETRY_MS);
    this.#failed(error);
  }

  /** Servers that are away come back, those of whose namespaces nobody asks anything too. */
  async retry(): Promise<void> {
    this.forgetReplaced();
    for (const part of this.#away.keys()) {
      try {
        // A first page is a sign of life, as good as any.
        for await (const _ of this.#redis.walk(part)) break;
        this.answered(part);
      } catch (error) {
        this.broke(part, error);
      }
    }
  }

  forgetReplaced(): void {
    const parts = this.#redis.parts();
    for (const part of this.#away.keys()) if (!parts.includes(part)) this.answered(part);
  }

  /** All answer, as far as was seen. */
  isWhole(): boolean {
    const parts = this.#redis.parts();
    // The empty one: of namespaces that no server has.
    const isAway = [...this.#away.keys()].some((part) => part === "" || parts.includes(part));
    return this.#redis.connected() && !isAway;
  }
}
