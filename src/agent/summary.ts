/** What an import did, for people and as JSON. */
import { OUTCOMES, type Outcome } from "./deliver.ts";

/** Counts of one run. `signed`: reports made; the outcomes count answers, also to earlier reports. */
export type Tally = Record<Outcome | "signed" | "rejected", number>;

export interface Summary {
  /** Files that had something new. */
  files: number;
  /** Lines taken, those included that came to nothing. */
  lines: number;
  malformed: number;
  /** Lines that wait in their files for an enrolment of their instance, from this run or before. */
  unrouted: number;
  total: Tally;
  logs: { log: string; unique_id: string; tally: Tally }[];
}

export function emptyTally(): Tally {
  return { signed: 0, accepted: 0, duplicate: 0, conflict: 0, held: 0, refused: 0, rejected: 0 };
}

export function addTally(sum: Tally, { signed, rejected, ...outcomes }: Tally): void {
  sum.signed += signed;
  sum.rejected += rejected;
  for (const outcome of OUTCOMES) sum[outcome] += outcomes[outcome];
}

/** One line for each log, and one for what belongs to none. */
export function summaryText({ files, lines, malformed, unrouted, total, logs }: Summary): string {
  const sentences = [
    `${lines} lines of ${files} files: ${total.signed} signed, ${total.rejected} rejected, ${malformed} malformed.`,
    ...logs.map(({ unique_id, tally }) => `${unique_id}: ${outcomesText(tally)}.`),
  ];
  if (unrouted > 0) {
    sentences.push(
      `${unrouted} lines wait for the enrolment of their instance: claim it, and import again.`,
    );
  }
  return sentences.join("\n");
}

function outcomesText(tally: Tally): string {
  return OUTCOMES.map((outcome) => `${tally[outcome]} ${outcome}`).join(", ");
}
