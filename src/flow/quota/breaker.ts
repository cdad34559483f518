/**
 * Which servers of a Redis failed and are left alone for a moment: so that one that says nothing is waited
 * for once, and not by all who ask. Who was replaced is forgotten, since nobody asks it any more. A server that
 * answers others is not away: then it is the namespace that is left alone.
 */
import type { NamespaceKey } from "../../core/quota/live.ts";
import type { RedisStore } from "../../store/live-redis.ts";
import type { Clock } from "../clock.ts";

/** So long a server that failed is left alone. Then one call tries it, and the others do not wait for it. */
const RETRY_MS = 1_000;

/** Of namespaces that are left alone; more at once is no matter of theirs. */
const APART_MAX = 1_000;

type Servers = Pick<RedisStore, "connected" | "isWell" | "part" | "parts" | "walk">;

export class Breaker {
  readonly #redis: Servers;
  readonly #clock: Clock;
  readonly #failed: (error: unknown) => void;
  /** To when they are tried again. */
  readonly #away = new Map<string, number>();
  /** Namespaces that failed by themselves, likewise. */
  readonly #apart = new Map<string, number>();

  constructor(redis: Servers, options: { clock: Clock; failed: (error: unknown) => void }) {
    this.#redis = redis;
    this.#clock = options.clock;
    this.#failed = options.failed;
  }

  /**
   * Undefined, if it answered in time. A server that failed is left alone, and then tried by one caller; the
   * others need not wait for the trial.
   */
  async ask<T>(key: NamespaceKey, call: () => Promise<T>): Promise<T | undefined> {
    const part = this.#redis.part(key);
    const name = nameOf(key);
    if (!(this.#mayTry(this.#apart, name) && this.#mayTry(this.#away, part))) return undefined;
    try {
      const answer = await call();
      this.answered(part);
      if (this.#apart.size > 0) this.#apart.delete(name);
      return answer;
    } catch (error) {
      this.broke(part, error);
      void this.#judge(part, name, error);
      return undefined;
    }
  }

  #mayTry(failed: Map<string, number>, name: string): boolean {
    const retryAt = failed.size === 0 ? undefined : failed.get(name);
    if (retryAt === undefined) return true;
    const now = this.#clock.now();
    // In both directions: a clock that stepped back must not leave anybody alone for as long.
    if (now < retryAt && retryAt - now <= RETRY_MS) return false;
    failed.set(name, now + RETRY_MS);
    return true;
  }

  /** Nobody waits for it: who asks meanwhile is answered by the process. */
  async #judge(part: string, name: string, error: unknown): Promise<void> {
    if (!(await this.#redis.isWell(part, error))) return;
    this.answered(part);
    this.#apart.set(name, this.#clock.now() + RETRY_MS);
    const [oldest] = this.#apart.keys();
    if (oldest !== undefined && this.#apart.size > APART_MAX) this.#apart.delete(oldest);
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

function nameOf({ log, namespace }: NamespaceKey): string {
  return `${log}:${namespace}`;
}
