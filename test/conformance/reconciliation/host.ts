/** A runner's host with a key of its own that signs what it is told to, also what no agent would. */
import { type AgentState, Client, claim, SURROUNDINGS } from "../../../src/agent/index.ts";
import { signer } from "../../../src/agent/key.ts";
import { reporter } from "../../../src/agent/reporter.ts";
import { type Api, call } from "../../../src/command/api.ts";
import type { Attestation } from "../../../src/core/report.ts";
import { TYP } from "../../../src/core/report.ts";
import { instantText } from "../../../src/core/unit.ts";
import type { Build } from "./builds.ts";

export interface Place {
  api: Api;
  log: string;
  /** Keys are kept in it. */
  state: AgentState;
  now(): number;
}

export class Host {
  readonly kid: string;
  readonly #place: Place;
  readonly #uuid: string;

  private constructor(place: Place, kid: string, uuid: string) {
    this.#place = place;
    this.kid = kid;
    this.#uuid = uuid;
  }

  static async enrol(place: Place, runner: string, machine_type: string): Promise<Host> {
    const { api, log, now, state } = place;
    const uuid = `strange-${runner}`;
    const line = { uuid, runner_id: runner, tracking: "hosted", runner_type: "instance" };
    const effective_from = "2026-01-01T00:00:00.000Z";
    const runners = [{ ...line, machine_type, effective_from }];
    const asked = { log, namespaces: [], runners };
    const { token } = await call<{ token: string }>(api, "POST", "/v1/enrolments", asked);
    const surroundings = { ...SURROUNDINGS, now };
    const { kid } = await claim(state, new Client({ server: api.server, surroundings }), {
      log,
      token,
    });
    return new Host(place, kid, uuid);
  }

  /** With counters from 1 on, or with these. */
  async report(
    builds: readonly Build[],
    counters = builds.map((_, i) => BigInt(i + 1)),
  ): Promise<void> {
    const { api, log, now, state } = this.#place;
    const report = reporter(state.key(this.kid), log);
    const reports = builds.map((build, i) => {
      const { finished, job, ms, namespace, project, started } = build;
      const measured = {
        id: `${this.#uuid} ${job}`,
        job: { id: job, pipeline_id: "1", project_id: project, root_namespace_id: namespace },
        runner: { executor: "docker", system_id: "s_1", uuid: this.#uuid },
        usage: {
          duration_ms: String(ms),
          failure_reason: "",
          finished_at: finished,
          started_at: started,
          status: "success",
        },
      };
      return report(measured, counters[i] ?? 0n, now());
    });
    const { results } = await call<{ results: { code: string }[] }>(api, "POST", "/v1/reports", {
      reports,
    });
    const other = results.find(({ code }) => code !== "accepted");
    if (other !== undefined) throw new Error(`a planted report was answered ${other.code}`);
  }

  async attest(said: Partial<Attestation>): Promise<void> {
    const { api, log, now, state } = this.#place;
    const jws = signer(
      state.key(this.kid),
      TYP.attestation,
    )({
      clock_offset_ms: "0",
      counter: "0",
      files: [],
      issued_at: instantText(now()),
      log,
      malformed: "0",
      rejected: "0",
      spool: "0",
      ...said,
    });
    const post = { method: "POST", headers: { "content-type": "application/jose" }, body: jws };
    const { status } = await fetch(`${api.server}/v1/attestations`, post);
    if (status !== 201) throw new Error(`a planted attestation was answered ${status}`);
  }
}
