/** A host with a relay between a runner and a GitLab, and a Minutebook beside. */
import { SURROUNDINGS } from "../../../src/agent/client.ts";
import { Relay, type RelayOptions } from "../../../src/agent/relay/relay.ts";
import { closeStage, openStage, type Stage } from "../stage.ts";
import { GitLab } from "./gitlab.ts";
import { Runner } from "./runner.ts";

export class House {
  readonly gitlab = new GitLab();
  readonly notices: string[] = [];
  readonly stage: Stage;
  gitlabUrl = new URL("http://localhost");
  runner = new Runner("http://localhost");
  url = "";
  #controller = new AbortController();
  #ended: Promise<unknown> = Promise.resolve();

  private constructor(stage: Stage) {
    this.stage = stage;
  }

  static async open(): Promise<House> {
    const house = new House(await openStage());
    house.gitlabUrl = await house.gitlab.start();
    await house.startRelay();
    return house;
  }

  async startRelay(options: Partial<RelayOptions> = {}): Promise<void> {
    this.#controller = new AbortController();
    this.url = await new Promise<string>((resolve, reject) => {
      const relay = new Relay({
        folder: this.stage.host.state,
        listen: { host: "127.0.0.1", port: 0 },
        gitlab: this.gitlabUrl,
        surroundings: SURROUNDINGS,
        signal: this.#controller.signal,
        intervalMs: 500,
        onNotice: (sentence) => this.notices.push(sentence),
        onListening: resolve,
        ...options,
      });
      this.#ended = relay.run();
      this.#ended.catch(reject);
    });
    this.runner = new Runner(this.url);
  }

  async stopRelay(): Promise<unknown> {
    this.#controller.abort();
    const counts = await this.#ended;
    this.runner.close();
    return counts;
  }

  async close(): Promise<void> {
    this.runner.close();
    await this.stopRelay();
    await this.gitlab.stop();
    await closeStage(this.stage);
  }

  /** A job that the runner was given and has begun. */
  async begun(id: string): Promise<NonNullable<Awaited<ReturnType<Runner["take"]>>>> {
    const job = await this.taken(id);
    await job.touch();
    return job;
  }

  async taken(id: string): Promise<NonNullable<Awaited<ReturnType<Runner["take"]>>>> {
    this.gitlab.queue(id);
    const job = await this.runner.take();
    if (job === undefined) throw new Error("no job was given");
    return job;
  }
}
