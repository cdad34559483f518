/** How much may be on its way at once. Refused here, an overload costs no signature and no lock. */
import { Problem } from "../../core/problem.ts";

export interface Intake {
  /**
   * Takes a request in, before anything of it is looked at; call what is returned when it is answered.
   *
   * @throws Problem `busy` when it does not fit beside what is on its way
   */
  enter(reports: number, bytes: number): () => void;
  /** Reports on their way. */
  reports(): number;
}

/** About two seconds of work, and what that holds in memory. */
const REPORTS_MAX = 10_000;
const BYTES_MAX = 32 * 1024 * 1024;

export function openIntake(limits: { reports?: number; bytes?: number } = {}): Intake {
  const { reports: reportsMax = REPORTS_MAX, bytes: bytesMax = BYTES_MAX } = limits;
  let reports = 0;
  let bytes = 0;
  return {
    enter(moreReports, moreBytes) {
      if (reports + moreReports > reportsMax || bytes + moreBytes > bytesMax) {
        throw new Problem("busy");
      }
      reports += moreReports;
      bytes += moreBytes;
      return () => {
        reports -= moreReports;
        bytes -= moreBytes;
      };
    },
    reports: () => reports,
  };
}
