/**
 * How much may be proven at once: of one receipt one thing, of one log a part, and large receipts never
 * at the price of small ones, so that nobody's receipts keep another's out.
 */
import { Problem } from "../../core/problem.ts";

export interface ProofRoom {
  /**
   * Call what is returned when the proofs are made.
   *
   * @throws Problem `busy` when they do not fit beside those that are being made
   */
  enter(asked: { log: string; receipt: string; results: number }): () => void;
}

/** Results, each of which may take a few tiles of 8 KiB. Both sizes of receipts have as much. */
const RESULTS_MAX = 1_500;
const LOG_RESULTS_MAX = 500;
/** Results of a receipt that is small. */
const SMALL_MAX = 50;

export function openProofRoom(
  limits: { results?: number; ofLog?: number; small?: number } = {},
): ProofRoom {
  const { results: max = RESULTS_MAX, ofLog: logMax = LOG_RESULTS_MAX, small = SMALL_MAX } = limits;
  const receipts = new Set<string>();
  const taken = new Map<string, number>();

  function add(name: string, results: number): void {
    const sum = (taken.get(name) ?? 0) + results;
    if (sum === 0) taken.delete(name);
    else taken.set(name, sum);
  }

  return {
    enter({ log, receipt, results }) {
      const size = results > small ? "large" : "small";
      const ofLog = `${size} ${log}`;
      const fits = (name: string, most: number): boolean =>
        (taken.get(name) ?? 0) + results <= most;
      if (receipts.has(receipt) || !fits(size, max) || !fits(ofLog, logMax)) {
        throw new Problem("busy");
      }
      receipts.add(receipt);
      for (const name of [size, ofLog]) add(name, results);
      return () => {
        receipts.delete(receipt);
        for (const name of [size, ofLog]) add(name, -results);
      };
    },
  };
}
