/** In which order namespaces were asked for, of all logs: which of them have to make room. */
import type { NamespaceKey } from "../../core/quota/live.ts";

export class Recency {
  /** Longest unasked first. */
  readonly #keys = new Map<string, NamespaceKey>();

  touch(key: NamespaceKey): void {
    const id = idOf(key);
    this.#keys.delete(id);
    this.#keys.set(id, key);
  }

  delete(key: NamespaceKey): void {
    this.#keys.delete(idOf(key));
  }

  /** Takes out those that are too many, longest unasked first. */
  overflow(max: number): NamespaceKey[] {
    const over: NamespaceKey[] = [];
    for (const [id, key] of this.#keys) {
      if (this.#keys.size <= max) break;
      this.#keys.delete(id);
      over.push(key);
    }
    return over;
  }
}

function idOf({ log, namespace }: NamespaceKey): string {
  return `${log} ${namespace}`;
}
