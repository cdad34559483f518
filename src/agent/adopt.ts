/** A person says whose word is a log's. Nothing else makes an agent believe a key it did not know. */
import { AgentError } from "./failure.ts";
import type { AgentState } from "./state.ts";
import type { Trust } from "./trust.ts";

/** From now on these keys are the log's. Reports that were answered without a receipt are sent once more. */
export function adoptKeys(state: AgentState, trust: Trust, now: number): void {
  state.save(state.trusting(trust));
  const spool = state.spool(trust.log);
  const promises = [...spool.open()].flatMap(({ promise, receipt }) =>
    receipt === undefined ? [promise] : [],
  );
  const reports = spool.bare();
  if (reports.length > 0) spool.repeat({ at: now, reports, promises });
}

/**
 * The log has lost what it showed before, and goes on: it is held to what it shows next, and everything
 * that is kept is sent, and proven, once more.
 * @throws AgentError `untrusted`, where the log's keys are not known
 */
export function adoptHistory(state: AgentState, log: string, now: number): void {
  if (state.trust(log) === undefined) {
    throw new AgentError("untrusted", `No key of log ${log} is known: give it with --vkey.`);
  }
  const spool = state.spool(log);
  spool.repeat({ at: now, reports: spool.kept() });
  spool.see("", "");
}
