/** The last few answers to questions that come again, those under way included. */
export class Recent<T> {
  readonly #max: number;
  readonly #answers = new Map<string, Promise<T>>();

  constructor(max: number) {
    this.#max = max;
  }

  get(key: string, ask: () => Promise<T>): Promise<T> {
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const answer = ask();
    this.#answers.set(key, answer);
    const [oldest] = this.#answers.keys();
    if (this.#answers.size > this.#max && oldest !== undefined) this.#answers.delete(oldest);
    return answer;
  }
}
