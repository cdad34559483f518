/** Cut-offs of months (BYTES §4): where usage is posted that comes when its month is closed. */
import { nextMonth } from "./unit.ts";

export interface Closing {
  /** Of the `month_closing` entry. */
  readonly index: bigint;
  readonly month: string;
}

export class Months {
  readonly #closings: Closing[] = [];

  /** The last closing that was not withdrawn. */
  get last(): Closing | undefined {
    return this.#closings.at(-1);
  }

  close(closing: Closing): void {
    this.#closings.push(closing);
  }

  /** Only the last can be withdrawn; `admit` lets nothing else in. */
  withdraw(): void {
    this.#closings.pop();
  }

  /** The usage month, or the month after the last closing, whichever is later. */
  posting(usageMonth: string): string {
    const open = this.last === undefined ? usageMonth : nextMonth(this.last.month);
    return open > usageMonth ? open : usageMonth;
  }
}
