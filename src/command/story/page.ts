/** The story as a page of text of at most 60 lines. */
import { NAMESPACE_NAMES } from "../demo.ts";
import type { Story } from "./facts.ts";

export function page(story: Story, keepsServing: boolean): string {
  const lines = [
    `Minutebook ${story.version}: what builds used, signed by who measured it, in a log that anyone can check.`,
    "",
    ...build(story),
    "",
    ...month(story),
    "",
    ...outage(story),
    "",
    ...quota(story),
    "",
    ...crash(story),
    "",
    ...control(story),
    "",
    ...tampered(story),
    "",
    ...next(story, keepsServing),
  ];
  return `${lines.join("\n")}\n`;
}

function build({ build, instance }: Story): string[] {
  const { line, kid, counter, digest, index, leaf, prev } = build;
  return [
    "1  One build, from the runner's log to the bill",
    `   written    ${excerpt(line)}`,
    `   signed     by key ${kid}`,
    `              as its report ${counter}, SHA-256 ${digest}`,
    `   entered    as entry ${index} of log ${instance.log}`,
    `              leaf ${leaf} after ${prev}`,
    `   charged    ${build.duration_ms} ms × ${build.factor} (${build.machine_type}) = ${build.compute_ms} compute-ms ÷ 60,000 = ${build.compute_minutes} compute minutes`,
  ];
}

/** The members that are billed from, as the runner wrote them. */
function excerpt(line: string): string {
  const names = ["id", "duration_seconds", "status", "started_at", "finished_at"];
  const job = line.slice(line.indexOf('"job":'));
  const members = names.map(
    (name) => new RegExp(`"${name}":("[^"]*"|[0-9.]+)`).exec(job)?.[0] ?? "",
  );
  return `{…"job":{${members.join(",…")}…}…}`;
}

function month({ month }: Story): string[] {
  const rows = month.rows.map(({ namespace, tracking, jobs, compute_minutes }) => {
    const name = `${NAMESPACE_NAMES[namespace] ?? ""} (${namespace})`;
    const bill = tracking === "hosted" ? "billed" : "tracked beside it, never billed";
    return `   ${name.padEnd(14)}${tracking.padEnd(14)}${jobs.padStart(5)} jobs ${compute_minutes.padStart(12)} compute minutes  ${bill}`;
  });
  return [
    `2  The month ${month.billing_month} by namespace, as of entries 0 … ${Number(month.as_of) - 1}`,
    ...rows,
  ];
}

function outage({ outage }: Story): string[] {
  return [
    "3  GitLab answers 500 for an hour",
    `   Job ${outage.job} ran ${outage.minutes} minutes; its last update went unanswered for ${outage.unanswered_minutes} more. Measured from`,
    `   outside, the platform would bill ${outage.platform_minutes} minutes. The runner's own figure is on the log: Minutebook bills ${outage.minutes}.`,
  ];
}

function quota({ quota }: Story): string[] {
  const { as_of, namespace, refused, reported, source, started, stopped, used } = quota;
  const answer = ({ allowed }: { allowed: boolean }): string => (allowed ? "allowed" : "refused");
  const place = source === "redis" ? "Redis" : "the service's own memory";
  const name = `${NAMESPACE_NAMES[namespace] ?? ""} (${namespace})`;
  return [
    `4  Ten minutes left, decided while jobs run: what is live is kept in ${place}, what is used is on the log`,
    `   ${name} has ${started.remaining_minutes} compute minutes left. A pending job asks to start: ${answer(started)}.`,
    `   Its host says that it has run for ${used.minutes} minutes. Another pending job asks: ${answer(refused)}, ${refused.remaining_minutes} left.`,
    `   At ${stopped.minutes} minutes the heartbeat of the first is answered Job-Status: ${stopped.job_status}, ${stopped.remaining_minutes} left, as of entries 0 … ${Number(as_of) - 1}.`,
    `   Its report comes: ${reported.used_minutes} used, ${reported.live_minutes} live, ${reported.remaining_minutes} left. Nothing was counted twice.`,
  ];
}

function crash({ crash }: Story): string[] {
  return [
    "5  kill -9 in the middle",
    `   The service was killed after ${crash.answered_before} of ${crash.reports} answers; started again, the agent went on: ${crash.accepted} accepted.`,
    `   The same ${crash.repeated} lines once more, from a copied file: ${crash.duplicates} duplicates. Compute minutes before ${crash.before}, after ${crash.after}.`,
  ];
}

function control({ control }: Story): string[] {
  const { adjusted, broken, closed } = control;
  return [
    "6  Whatever a person does to money needs a second person, and a closed month stays as it is",
    `   Finance asks to give back a minute of job ${adjusted.job} (entry ${adjusted.proposal}). Somebody else signs in and says yes (entry ${adjusted.approval}):`,
    `   the adjustment is entry ${adjusted.index}, and of ${adjusted.before} compute minutes ${adjusted.after} are left to be billed.`,
    `   GitLab lists job ${broken.job}, ${broken.minutes} minutes, that nobody reported: ${broken.code}, entry ${broken.index}, billed to nobody.`,
    `   Closing ${closed.month} is refused (${broken.refused}) until both have looked at it (entry ${broken.accepted}). Then it closes for ever (entry ${closed.index}):`,
    `   ${closed.jobs} jobs, ${closed.minutes} compute minutes. Nobody outside holds a checkpoint of it, so its statement says: ${closed.anchor}.`,
    `   SHA-256 of the statement ${closed.sha256}`,
  ];
}

function tampered({ receipts, serving, tampered, verified }: Story): string[] {
  return [
    "7  Trust nobody",
    `   receipts of the service, held against the log by the agent: ${receipts.proven} kept, ${receipts.broken} broken`,
    `   check-proof ${serving.proof_file}, without a network: ${verified.proof}`,
    `   minutebook-audit verify   ${verified.archive}`,
    `   minutebook check          ${verified.database}`,
    `   one digit of entry ${tampered.index} changed in a copy of the archive:   ${tampered.archive}`,
    `   one figure of entry ${tampered.index} changed in a copy of the database: ${tampered.database}`,
  ];
}

function next({ serving, seconds, instance, quota }: Story, keepsServing: boolean): string[] {
  const { data, token_files, url, vkey_file } = serving;
  const auditor = token_files["auditor"] ?? "";
  const lead = keepsServing ? `Serving at ${url} until Ctrl-C` : `Served at ${url}`;
  return [
    `${lead}; told in ${seconds} s. Everything lies in ${data}, tokens in ${Object.values(token_files).join(" and ")}.`,
    `   npx minutebook-audit verify ${data}/archive/${instance.log} --vkey ${vkey_file} --live`,
    `   npx minutebook check --data ${data}`,
    `   curl -H "Authorization: Bearer $(cat ${auditor})" "${url}/v1/usage?log=${instance.log}&group=namespace,tracking"`,
    `   MINUTEBOOK_TOKEN=$(cat ${auditor}) npx minutebook quota explain ${quota.namespace} --log ${instance.log} --server ${url}`,
    `   curl ${url}/openapi.json        npx minutebook --help`,
  ];
}
