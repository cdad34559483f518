/**
 * Which ids a project's address stands for, learnt from the usage logs of this host: the runner's list of
 * jobs has addresses only. What was never learnt is not guessed.
 */
import { closeSync, fstatSync, mkdirSync, openSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { LosslessNumber, parse } from "lossless-json";
import { z } from "zod";
import { decodeUtf8 } from "../../core/text.ts";
import { IntegerText, NonEmptyText, Text } from "../../core/unit.ts";
import { replaceFile } from "../durable.ts";
import { AgentError, errnoOf } from "../failure.ts";
import { readLines } from "../lines.ts";
import { USAGE_LOG } from "../usagelog.ts";

const Project = z.strictObject({
  unique_id: NonEmptyText,
  project_id: IntegerText,
  root_namespace_id: IntegerText,
  /** Of the runner process that ran its last job. */
  system_id: Text,
});
export type Project = z.infer<typeof Project>;
const Projects = z.strictObject({ v: z.literal("1"), projects: z.record(z.string(), Project) });

const Id = z
  .instanceof(LosslessNumber)
  .transform((number) => number.value)
  .pipe(IntegerText)
  .refine((id) => id !== "0");
/** The parts that are read (BYTES §6). */
const Learnt = z.object({
  runner: z.object({ system_id: Text }),
  job: z.object({
    url: z.string().max(2_000),
    project: z.object({ id: Id }),
    root_namespace: z.object({ id: Id }),
    instance: z.object({ unique_id: NonEmptyText }),
  }),
});

const JOB_PATH = /\/-\/jobs\/[0-9]+$/;
const LINE_BYTES_MAX = 1024 * 1024;
/** Of a file that was never looked at, the newest lines: older ones were learnt before, or are old. */
const FIRST_BYTES = 16 * 1024 * 1024;
const PROJECTS_MAX = 10_000;

export class ProjectMap {
  readonly #path: string;
  readonly #logs: string;
  readonly #offsets = new Map<string, number>();
  /** Those that ran a job last come last. */
  readonly #projects: Map<string, Project>;

  /**
   * @param folder where the map is kept
   * @param logs gitlab-runner's folder of usage logs
   * @throws AgentError `damaged`
   */
  constructor(folder: string, logs: string) {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#path = join(folder, "projects.json");
    this.#logs = logs;
    this.#projects = readMap(this.#path);
  }

  get(address: string): Project | undefined {
    return this.#projects.get(address);
  }

  /**
   * From what was written since it was last asked to; durable on return.
   * @throws AgentError `unreadable`, `no-space`
   */
  learn(): void {
    let isNew = false;
    for (const name of this.#names()) isNew = this.#read(name) || isNew;
    for (const address of this.#projects.keys()) {
      if (this.#projects.size <= PROJECTS_MAX) break;
      this.#projects.delete(address);
    }
    if (!isNew) return;
    const projects = Object.fromEntries(this.#projects);
    replaceFile(
      this.#path,
      JSON.stringify({ v: "1", projects } satisfies z.infer<typeof Projects>),
    );
  }

  #names(): string[] {
    try {
      const names = readdirSync(this.#logs).filter((name) => USAGE_LOG.test(name));
      for (const name of this.#offsets.keys())
        if (!names.includes(name)) this.#offsets.delete(name);
      return names.sort();
    } catch (cause) {
      throw new AgentError("unreadable", `${this.#logs} cannot be read (${errnoOf(cause)}).`, {
        cause,
      });
    }
  }

  /** True when something was learnt that was not known. */
  #read(name: string): boolean {
    let isNew = false;
    const fd = openLog(join(this.#logs, name));
    if (fd === undefined) return false;
    try {
      const { size } = fstatSync(fd);
      const last = this.#offsets.get(name) ?? Math.max(0, size - FIRST_BYTES);
      const from = last > size ? 0 : last; // replaced by a shorter one
      for (const line of readLines(fd, { from, to: size, bytesMax: LINE_BYTES_MAX })) {
        if (!line.complete) break;
        isNew = this.#take(line.bytes) || isNew;
        this.#offsets.set(name, line.end);
      }
    } finally {
      closeSync(fd);
    }
    return isNew;
  }

  #take(line: Uint8Array | undefined): boolean {
    const record = line && Learnt.safeParse(parseLine(line)).data;
    if (record === undefined || !JOB_PATH.test(record.job.url)) return false;
    const { job, runner } = record;
    const address = job.url.replace(JOB_PATH, "");
    const before = this.#projects.get(address);
    const project: Project = {
      unique_id: job.instance.unique_id,
      project_id: job.project.id,
      root_namespace_id: job.root_namespace.id,
      system_id: runner.system_id,
    };
    this.#projects.delete(address);
    this.#projects.set(address, project);
    return JSON.stringify(before) !== JSON.stringify(project);
  }
}

/** Undefined for one that was rotated away since it was listed. */
function openLog(path: string): number | undefined {
  try {
    return openSync(path, "r");
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return undefined;
    throw new AgentError("unreadable", `${path} cannot be read (${errnoOf(cause)}).`, { cause });
  }
}

function parseLine(bytes: Uint8Array): unknown {
  try {
    return parse(decodeUtf8(bytes) ?? "");
  } catch {
    return undefined; // counted by the import
  }
}

function readMap(path: string): Map<string, Project> {
  try {
    const { projects } = Projects.parse(JSON.parse(readFileSync(path, "utf8")));
    return new Map(Object.entries(projects));
  } catch (cause) {
    if (errnoOf(cause) === "ENOENT") return new Map();
    throw new AgentError("damaged", `${path} is not this agent's: remove it.`, { cause });
  }
}
