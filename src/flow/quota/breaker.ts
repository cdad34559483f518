/**
 * Which servers of a Redis failed and are left alone for a moment: so that one that says nothing is waited
 * for once, and not by all who ask. Who was replaced is forgotten, since nobody asks it any more. A server that
 * answers others is not away: then it is the namespace that is left alone.
 */
import type { Call, NamespaceKey } from "../../core/quota/live.ts";
import type { RedisStore } from "../../store/live-redis.ts";
import type { Clock } from "../clock.ts";

/** So long a server that failed is left alone. Then one call tries it, and the others do not wait for it. */
const RETRY_MS = 1_000;

/** Of namespaces that are left alone; more at once is no matter of theirs. */
const APART_MAX = 1_000;

/** A namespace, and the server that is asked about it: by the time of the answer it may be another's. */
interface Place {
  readonly part: string;
  readonly key: NamespaceKey;
}

const LOST = new Error("redis: a call without its answer");

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
   * Undefined in place of each that was not answered in time. A server that failed is left alone, and then tried
   * by one caller; the others need not wait for the trial.
   *
   * @param ask those that may be tried now; an Error in place of each answer that failed
   */
  async ask<T>(
    calls: readonly Call[],
    ask: (calls: readonly Call[]) => Promise<(T | Error)[]>,
  ): Promise<(T | undefined)[]> {
    const places = calls.map(({ key }) => ({ part: this.#redis.part(key), key }));
    const may = places.map((place) => this.#mayAsk(place));
    const tried = calls.filter((_, i) => may[i]);
    const answers = tried.length === 0 ? [] : await ask(tried);
    let next = 0;
    return places.map((place, i) => {
      if (!may[i]) return undefined;
      const answer = answers[next] ?? LOST;
      next += 1;
      return this.#took(place, answer);
    });
  }

  #mayAsk({ part, key }: Place): boolean {
    const isApart = this.#apart.size > 0 && !this.#mayTry(this.#apart, nameOf(key));
    return !isApart && this.#mayTry(this.#away, part);
  }

  #took<T>({ part, key }: Place, answer: T | Error): T | undefined {
    if (answer instanceof Error) {
      this.broke(part, answer);
      void this.#judge(part, nameOf(key), answer);
      return undefined;
    }
    this.answered(part);
    if (this.#apart.size > 0) this.#apart.delete(nameOf(key));
    return answer;
  }

  #mayTry(failed: Map<string, number>, name: string): boolean {
    const retryAt = failed.get(name);
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
