/** Why a log, or what is kept of it, is refused: the code for callers, and what was found, for operators only, as its cause. */
import { Problem } from "../../core/problem.ts";
import { ArchiveError } from "../../store/archive.ts";

/** The database is behind the archive, or differs from it or from itself. */
export function logBehind(finding: string, cause?: Error): Problem {
  return refusal("log-behind", new Error(finding, { cause }));
}

/** The problem that an archive's failure is answered with; undefined for errors of other origin. */
export function refusalOf(error: unknown): Problem | undefined {
  if (error instanceof Problem) return error;
  if (!(error instanceof ArchiveError)) return undefined;
  if (error.code === "archive-contradiction") {
    return logBehind(`${error.message}: run minutebook recover`, error);
  }
  return refusal("archive-unavailable", error);
}

/** What is kept was altered since; nobody is given it. @param what and of which log, for operators only */
export function notAsSigned(what: string): Problem {
  return refusal("not-as-signed", new Error(`${what} is not what was signed`));
}

function refusal(
  code: "log-behind" | "archive-unavailable" | "not-as-signed",
  cause: Error,
): Problem {
  const problem = new Problem(code);
  problem.cause = cause;
  return problem;
}
