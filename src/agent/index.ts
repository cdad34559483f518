/**
 * Minutebook's agent as a library, for a host program that reads gitlab-runner's usage logs itself
 * or wants reports signed in its own process.
 */
export { adoptHistory, adoptKeys } from "./adopt.ts";
export { attest } from "./attest.ts";
export { claim } from "./claim.ts";
export { Client, type ClientOptions, SURROUNDINGS, type Surroundings } from "./client.ts";
export { deliver, type Outcome } from "./deliver.ts";
export { AgentError, type AgentErrorCode } from "./failure.ts";
export { type ImportOptions, importFolder, type Progress } from "./import.ts";
export { loadKey, type SigningKey } from "./key.ts";
export { type Beat, Heart, type HeartOptions } from "./live/heart.ts";
export {
  type Running,
  type Signed,
  signHeartbeats,
} from "./live/running.ts";
export { type Account, accountOf, check } from "./receipts.ts";
export { type Reporter, reporter } from "./reporter.ts";
export { beginRotation, finishRotation } from "./rotate.ts";
export { AgentState, type Enrolment } from "./state.ts";
export type { Summary, Tally } from "./summary.ts";
export { readKeys, type Trust } from "./trust.ts";
export { type Line, type Measurement, readLine } from "./usagelog.ts";
