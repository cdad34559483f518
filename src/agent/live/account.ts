/** What a beat comes to, in sentences; those that were said last time are not said again. */
import type { Beat } from "./heart.ts";

export class Account {
  readonly #say: (sentence: string) => void;
  #said = new Set<string>();

  constructor(say: (sentence: string) => void) {
    this.#say = say;
  }

  /** @param unknown jobs whose ids nobody told, beside those of the beat */
  beat({ heard, stop, unplaced, troubles }: Beat, unknown: number): void {
    const without = unknown + unplaced;
    const figures = `Running jobs: ${heard} answered, ${stop.size} of them beyond quota.`;
    this.sentences([
      figures,
      ...(without === 0
        ? []
        : [`Running jobs that cannot be placed, and count nowhere: ${without}.`]),
      ...troubles,
    ]);
  }

  sentences(sentences: readonly string[]): void {
    for (const sentence of sentences) if (!this.#said.has(sentence)) this.#say(sentence);
    this.#said = new Set(sentences);
  }
}
