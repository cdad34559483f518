/** How long a piece of work may take in all, its pauses included, before it is left for another time. */
export class Patience {
  /** Of one request. */
  readonly attempts: number;
  #leftMs: number;

  constructor(ms: number, attempts: number) {
    this.#leftMs = ms;
    this.attempts = attempts;
  }

  get leftMs(): number {
    return this.#leftMs;
  }

  spend(ms: number): void {
    this.#leftMs -= ms;
  }
}
