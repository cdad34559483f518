/** Logs that prove themselves. */
import { sha256 } from "../../audit/native.ts";
import { encodeBase64 } from "../../src/core/text.ts";
import { coverage } from "./closing.ts";
import {
  type Agent,
  agentOf,
  card,
  LOG_ID,
  LONG_AGO,
  limit,
  line,
  NOW,
  pack,
  SALT,
  TestLog,
} from "./log.ts";

/** With no more than it takes for a usage entry, a duplicate and a conflict. */
export function smallLog(id = LOG_ID): TestLog {
  const log = new TestLog(id);
  log.write("rate_card", card());
  const agent = log.enrol(2, [line("runner-a")]);
  log.submit(agent, { job: "1" });
  log.submit(agent, { job: "1" });
  log.submit(agent, { job: "1", duration: "1" });
  return log;
}

/** Of so many entries, most of which say nothing of interest. */
export function longLog(size: number, id = LOG_ID): TestLog {
  const log = smallLog(id);
  const schema_sha256 = encodeBase64(new Uint8Array(32));
  while (log.size < size) {
    log.write("service", { schema_sha256, salt: SALT, version: String(log.size) });
  }
  return log;
}

/** A log with entries of every kind that proves itself. */
export function honestLog(id = LOG_ID): { log: TestLog; agent: Agent; other: Agent } {
  const log = new TestLog(id);
  log.write("service", {
    schema_sha256: encodeBase64(new Uint8Array(32)),
    salt: SALT,
    version: "1",
  });
  log.write("rate_card", card());
  log.write("rate_card", card({ tracking: "self_managed", project_factors: {} }));
  const named = { approval: "", by: "platform", salt: SALT, source: "test" };
  const oss = { class: "oss", effective_from: LONG_AGO, project_id: "11" };
  log.write("project_class", { ...named, ...oss });
  log.write("project_class", { ...named, ...oss, class: "contribution", project_id: "12" });
  log.write("quota", limit("1", "10000"));
  const agent = log.enrol(2, [line("runner-a"), line("runner-b", { machine_type: "gpu" })]);
  const own = line("runner-c", { runner_type: "group", tracking: "self_managed", runner_id: "8" });
  const other = log.enrol(3, [own], ["5"]);
  log.submit(agent, { job: "1", duration: "60001" });
  log.submit(agent, { job: "2", project: "11", uuid: "runner-b", duration: "3" });
  log.submit(agent, { job: "3", project: "12", reason: "runner_system_failure" });
  log.submit(agent, { job: "4", project: "12" });
  log.submit(agent, { job: "1", duration: "60001" });
  log.submit(agent, { job: "1", duration: "60002" });
  log.submit(agent, { job: "5", finished: "2026-11-20T12:05:00.001Z" });
  log.submit(other, { job: "1", uuid: "runner-c", namespace: "5" });
  log.submit(other, { job: "6", uuid: "runner-c", namespace: "1" });
  log.attest(agent);
  log.write("coverage", coverage("2026-10-01", "7"));
  log.write("month_closing", { approval: "", by: "finance", month: "2026-10-01", salt: SALT });
  log.submit(agent, { job: "7", finished: "2026-10-31T23:59:59.999Z" });
  const heir = agentOf(4);
  log.write("key_rotated", { jws: log.rotation(agent, heir, String(agent.counter)) });
  const enrolment = String(log.prefix.key(agent.kid)?.enrolment);
  const token = encodeBase64(sha256(Uint8Array.of(2)));
  log.write("key", { enrolment, jws: log.claim(heir, token), kid: heir.kid });
  log.submit(agent, { job: "8" });
  log.submit(heir, { job: "8" });
  log.write("key_revoked", {
    by: "operator",
    instant: NOW,
    kid: heir.kid,
    last_trusted_counter: "1",
    reason: "lost",
    salt: SALT,
  });
  log.submit(heir, { job: "9" });
  log.write("pack", pack("1"));
  log.write("pack", { ...pack("2"), minutes: "0", expires_in: "2026-11-01" });
  return { log, agent, other };
}
