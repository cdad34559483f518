/** In which order namespaces were asked for, of all logs: which of them have to make room. */
import type { NamespaceKey } from "../../core/quota/live.ts";

export class Recency {
  /** By log and namespace: to join the two to one name takes longer than to look twice. */
  readonly #keys = new Map<string, Map<string, NamespaceKey>>();
  /** Longest unasked first. */
  readonly #order = new Set<NamespaceKey>();

  touch(key: NamespaceKey): void {
    const keys = this.#keys.get(key.log) ?? new Map<string, NamespaceKey>();
    const known = keys.get(key.namespace) ?? key;
    if (known === key) this.#keys.set(key.log, keys.set(key.namespace, key));
    this.#order.delete(known);
    this.#order.add(known);
  }

  delete({ log, namespace }: NamespaceKey): void {
    const keys = this.#keys.get(log);
    const known = keys?.get(namespace);
    if (keys === undefined || known === undefined) return;
    this.#order.delete(known);
    keys.delete(namespace);
    if (keys.size === 0) this.#keys.delete(log);
  }

  /** Takes out those that are too many, longest unasked first. */
  overflow(max: number): NamespaceKey[] {
    const over: NamespaceKey[] = [];
    for (const key of this.#order) {
      if (this.#order.size <= max) break;
      this.delete(key);
      over.push(key);
    }
    return over;
  }
}
