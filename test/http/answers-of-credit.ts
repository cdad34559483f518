/** Everything that is answered about credit runs, and about what another card would have charged. */
import { type Answered, cardBody, type Request } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

/** At a log under single control, whose usage all comes back in the end. */
export async function askOfCredit(tell: Tell, { log }: { log: string }): Promise<void> {
  const cause = { reason: "outage", ticket: "INC-7" };
  const path = `/v1/logs/${log}/credit_runs`;
  await tell(`POST /v1/logs/${log}/namespace_lists`, { json: { namespaces: "7\n8\n" } });
  const asked = { json: { form: "zero_rate" } };
  const { preview } = (await tell(`POST /v1/logs/${log}/credit_previews`, asked)).json;
  const { index } = (await tell(`POST ${path}`, { json: { preview, ...cause } })).json;
  await tell(`POST ${path}/${index}/apply`);
  await tell(`GET ${path}/${index}`);
  const back = (await tell(`POST ${path}/${index}/reverse`, { json: cause })).json;
  await tell(`POST ${path}/${back["index"]}/apply`);
  await tell(`GET ${path}`);
  const { not_billable, project_factors, runner_factors, tracking } = cardBody() as Record<
    string,
    unknown
  >;
  const card = { not_billable, project_factors, runner_factors, tracking };
  const json = { card, from: "2026-01-01", to: "2027-01-01" };
  await tell(`POST /v1/logs/${log}/what_if`, { json });
}
