/** What is answered about reports that did not become usage, asked in every way that is answered differently. */
import { reported } from "../flow/door.ts";
import type { Answered, Request } from "./house.ts";

type Tell = (asked: string, request?: Request) => Promise<Answered>;

const WHY = { reason: "test", ticket: "1" };
const LONG = { duration_ms: "2678400001" };

/** By the key of seed 1. */
export async function askOfHolds(tell: Tell, { log }: { log: string }): Promise<void> {
  const held = async (job: number): Promise<unknown> => {
    const jose = reported(1, log, { counter: `6${job}`, job: { id: `6${job}` }, usage: LONG });
    return (await tell("POST /v1/reports", { jose })).json["index"];
  };
  for (const [job, verb] of ["release", "reject"].entries()) {
    const path = `POST /v1/logs/${log}/holds/${await held(job)}/${verb}`;
    for (const json of [{}, WHY, WHY]) await tell(path, { json });
  }
  const jose = reported(1, log, { counter: "69", job: { id: "1" }, usage: { duration_ms: "2" } });
  const { index } = (await tell("POST /v1/reports", { jose })).json;
  for (const outcome of ["corrected", "stands", "stands"]) {
    const json = { ...WHY, outcome };
    await tell(`POST /v1/logs/${log}/conflicts/${index}/resolve`, { json });
  }
  for (const kind of ["holds", "conflicts"]) {
    for (const state of ["open", "ended", "all", "none"]) {
      await tell(`GET /v1/logs/${log}/${kind}?state=${state}`);
    }
  }
}
