/**
 * The jobs that a relay sees running. What a killed relay must know when it starts again is one small
 * file a job: ids, and since when. Renamed into place but not synced, as jobs do not outlive the host.
 */
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { IntegerText, NonEmptyText, Text } from "../../core/unit.ts";
import { errnoOf } from "../failure.ts";
import type { Running } from "../live/running.ts";
import type { GivenJob, TokenHash } from "./exchange.ts";

const Ids = z.strictObject({
  id: IntegerText,
  unique_id: NonEmptyText,
  project_id: IntegerText,
  root_namespace_id: IntegerText,
  runner: z.strictObject({ system_id: Text, uuid: NonEmptyText }),
  timeout_ms: IntegerText.exactOptional(),
});
type Ids = z.infer<typeof Ids>;

const Kept = Ids.extend({
  v: z.literal("1"),
  /** Of the host's start that `begun` counts from. */
  boot: z.string(),
  /** Milliseconds; null while the runner has not said that it runs. */
  begun: z.int().min(0).nullable(),
  told: z.boolean(),
});

export interface RelayedJob {
  /** Undefined for a job that was given out before this relay listened, or by a GitLab that says too little. */
  readonly ids: Ids | undefined;
  begun: number | undefined;
  /** The runner has been told to stop it, which is done once. */
  told: boolean;
  /** In memory only; undefined until GitLab has shown it, or taken something by it. */
  token: TokenHash | undefined;
  /** How many are on their way to GitLab, which has answered none of them. */
  lastWords: number;
  /** GitLab wants the log once more before it takes the last word (412). */
  logAgain: boolean;
  /** Since when a `failed` of the service stands. */
  stopSince: number | undefined;
  /** When the runner last spoke of it. */
  heardAt: number;
}

/** gitlab-runner speaks of each job every 30 to 60 seconds, and at the longest every 15 minutes. */
const SILENT_MS = 5 * 60_000;
/** GitLab ends a job after an hour of silence: then nobody will speak of it again. */
const GONE_MS = 2 * 3_600_000;
/** More at once than any host runs. */
const JOBS_MAX = 10_000;
const NAME = /^[1-9][0-9]{0,18}\.json$/;

/** What a heartbeat says of a job. */
export type Said = Running & { of: RelayedJob };

export interface RegisterOptions {
  folder: string;
  boot: string;
  /** Milliseconds since the host's start. */
  clock: () => number;
  onNotice: (sentence: string) => void;
}

export class Register {
  readonly #options: RegisterOptions;
  readonly #jobs = new Map<string, RelayedJob>();

  /** What was left by another start of the host is removed: its jobs died with it. */
  constructor(options: RegisterOptions) {
    this.#options = options;
    mkdirSync(options.folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(options.folder)) this.#recover(name);
  }

  get(id: string): RelayedJob | undefined {
    return this.#jobs.get(id);
  }

  /** A job was given to the runner, which has not begun it. */
  give(given: GivenJob, systemId: string): void {
    const ids: Ids = {
      id: given.id,
      unique_id: given.uniqueId,
      project_id: given.projectId,
      root_namespace_id: given.rootNamespaceId,
      runner: { system_id: systemId, uuid: given.runner },
      ...(given.timeoutMs !== undefined && { timeout_ms: given.timeoutMs }),
    };
    this.#put(given.id, { ...newJob(ids, this.#options.clock()), token: given.token });
  }

  /** The runner runs it, from now on unless from before. Jobs that nobody announced are known by their id alone. */
  begin(id: string): void {
    const job = this.#jobs.get(id) ?? newJob(undefined, this.#options.clock());
    job.begun ??= this.#options.clock();
    this.#put(id, job);
  }

  heard(job: RelayedJob): void {
    job.heardAt = this.#options.clock();
  }

  /** As it now is, unless it has ended. */
  keep(id: string, job: RelayedJob): void {
    if (this.#jobs.get(id) === job) this.#put(id, job);
  }

  end(id: string): void {
    if (this.#jobs.delete(id)) rmSync(this.#path(id), { force: true });
  }

  /** What a heartbeat says now. Jobs of which the runner is silent freeze: it may have died. */
  running(): { known: Said[]; unknown: number } {
    const now = this.#options.clock();
    for (const [id, { heardAt }] of this.#jobs) if (now - heardAt > GONE_MS) this.end(id);
    const speaking = [...this.#jobs.values()].filter(
      ({ begun, heardAt }) => begun !== undefined && now - heardAt <= SILENT_MS,
    );
    const known = speaking.flatMap((job) => this.said(job));
    return { known, unknown: speaking.length - known.length };
  }

  /** Empty for a job whose ids are not known. */
  said(job: RelayedJob): Said[] {
    if (job.ids === undefined) return [];
    const { id, unique_id, project_id, root_namespace_id, runner, timeout_ms } = job.ids;
    const elapsed = job.begun === undefined ? 0 : this.#options.clock() - job.begun;
    const said = {
      elapsed_ms: String(elapsed),
      id,
      project_id,
      root_namespace_id,
      ...(timeout_ms !== undefined && { timeout_ms }),
    };
    return [{ uniqueId: unique_id, runner, job: said, of: job }];
  }

  #put(id: string, job: RelayedJob): void {
    if (this.#jobs.size >= JOBS_MAX && !this.#jobs.has(id)) {
      const [oldest = ""] = this.#jobs.keys();
      this.end(oldest);
    }
    this.#jobs.set(id, job);
    if (job.ids !== undefined) this.#write(id, job.ids, job);
  }

  #write(id: string, ids: Ids, { begun, told }: RelayedJob): void {
    const { boot, onNotice } = this.#options;
    const kept: z.infer<typeof Kept> = { ...ids, v: "1", boot, begun: begun ?? null, told };
    const path = this.#path(id);
    try {
      writeFileSync(`${path}.tmp`, JSON.stringify(kept), { mode: 0o600 });
      renameSync(`${path}.tmp`, path);
    } catch (error) {
      // The job goes on all the same; only a relay that starts anew will not know it.
      onNotice(`${path} cannot be written (${errnoOf(error)}): a restart will forget this job.`);
    }
  }

  #recover(name: string): void {
    const { folder, boot, clock } = this.#options;
    const path = join(folder, name);
    const kept = NAME.test(name) ? readKept(path) : undefined;
    if (kept === undefined || kept.boot !== boot || (kept.begun ?? 0) > clock()) {
      rmSync(path, { force: true });
      return;
    }
    const { v: _v, boot: _boot, begun, told, ...ids } = kept;
    const job = { ...newJob(ids, clock()), begun: begun ?? undefined, told };
    this.#jobs.set(ids.id, job);
  }

  #path(id: string): string {
    return join(this.#options.folder, `${id}.json`);
  }
}

function newJob(ids: Ids | undefined, now: number): RelayedJob {
  const said = { told: false, lastWords: 0, logAgain: false, stopSince: undefined };
  return { ids, begun: undefined, token: undefined, ...said, heardAt: now };
}

/** Undefined for what a crash, or somebody else, left there. */
function readKept(path: string): z.infer<typeof Kept> | undefined {
  try {
    return Kept.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
