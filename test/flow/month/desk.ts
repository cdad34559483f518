/** What a month needs before it can be closed, said to a log of its own; the test moves the clock. */
import type { AdjustmentLine } from "../../../src/core/control.ts";
import type { Body, EnrolledRunner, Kind } from "../../../src/core/entry.ts";
import { GRACE_MS, TOLERANCE_MS } from "../../../src/core/match.ts";
import type { Policy } from "../../../src/core/policy.ts";
import { Problem } from "../../../src/core/problem.ts";
import { TYP } from "../../../src/core/report.ts";
import { encodeBase64 } from "../../../src/core/text.ts";
import { instantText } from "../../../src/core/unit.ts";
import { openPublished } from "../../../src/flow/log/published.ts";
import { seal } from "../../../src/flow/log/seal.ts";
import { close } from "../../../src/flow/month/close.ts";
import { type Finished, type Finishing, finish } from "../../../src/flow/month/finish.ts";
import { statementJson, statementNote } from "../../../src/flow/month/read.ts";
import { withdraw } from "../../../src/flow/month/withdraw.ts";
import { matchDue } from "../../../src/flow/reconcile/match.ts";
import { notice } from "../../../src/flow/reconcile/notice.ts";
import type { SeenJob } from "../../../src/flow/reconcile/seen-job.ts";
import { take } from "../../../src/flow/reconcile/take.ts";
import { refresh } from "../../../src/flow/usage/fold.ts";
import { folderArchive } from "../../../src/store/archive-folder.ts";
import { keepThrough } from "../../../src/store/kept-populations.ts";
import { startMark } from "../../../src/store/reconcile-marks.ts";
import { transact } from "../../../src/store/transact.ts";
import { PACK, QUOTA } from "../../core/history.ts";
import {
  codes,
  type Door,
  entriesOf,
  type House,
  newAgent,
  newLog,
  ofKind,
  reported,
  sha256,
  sign,
} from "../door.ts";

const salt = encodeBase64(new Uint8Array(16));
const PERSON = { by: "p_test", salt };
const DECIDED = { ...PERSON, approval: "", reason: "looked_at", ticket: "OPS-1" };
const ZERO = encodeBase64(new Uint8Array(32));

export interface Build {
  job: string;
  namespace: string;
  /** 50, if none is said. */
  project?: string;
  minutes: number;
  finished: string;
  reason?: string;
}

/** A log with a hosted runner 700 and its key, of seed 1, from an instant on. */
export async function openDesk(
  house: House,
  unique_id: string,
  { since, policy, ...more }: { since: string; policy?: Policy; billing_from?: string },
): Promise<MonthDesk> {
  const door = house.open();
  door.now = Date.parse(since);
  const log = await newLog(door, unique_id, more);
  await newAgent(door, log, 1);
  return new MonthDesk(house, door, log, policy);
}

export class MonthDesk {
  readonly log: string;
  readonly finishing: Finishing;
  readonly #house: House;
  readonly #door: Door;
  /** What the platform says of builds that were accepted. */
  #seen: SeenJob[] = [];
  #counter = 0;
  #version = 0;

  constructor(house: House, door: Door, log: string, policy: Policy | undefined) {
    this.log = log;
    this.#house = house;
    this.#door = door;
    const { appender, keyring, random } = door;
    const parts = { appender, random, signerFor: keyring.signerFor };
    const clock = { now: () => door.now };
    const archive = folderArchive(house.archive);
    const sql = house.database.writer;
    this.finishing = { ...parts, sql, archive, policy, clock, closeDelayDays: 3n };
  }

  at(instant: string): void {
    this.#door.now = Date.parse(instant);
  }

  get keyring(): Door["keyring"] {
    return this.#door.keyring;
  }

  async put<K extends Kind>(kind: K, body: Body<K>): Promise<string> {
    return String((await this.#door.appender.control(this.log, kind, () => body)).index);
  }

  /** `closed`, or the code of the refusal and what it says is missing, by first words. */
  async close(month: string): Promise<string[]> {
    const asking = { ...this.#door, closeDelayDays: 3n };
    return await told(async () => await close(asking, { log: this.log, by: "p_test" }, { month }));
  }

  async withdraw(month: string): Promise<string[]> {
    return await told(async () => {
      await withdraw(this.#door, { log: this.log, by: "p_test" }, month);
    });
  }

  /** What the loops of a service would have done by now. */
  async settle(): Promise<void> {
    const { archive, clock, signerFor, sql } = this.finishing;
    await seal({
      sql,
      archive,
      clock,
      signerFor,
      guard: this.#door.guard,
      hash: sha256,
      log: this.log,
    });
    await refresh({ sql, clock });
  }

  async finish(): Promise<Finished | undefined> {
    return await finish(this.finishing, this.log);
  }

  async statement(month: string): Promise<string> {
    return await statementJson({ sql: this.#house.database.reader }, { log: this.log, month });
  }

  /** Its hash, under the log's key. */
  async note(month: string): Promise<string> {
    const { archive, signerFor } = this.finishing;
    const sql = this.#house.database.reader;
    const proofs = { archive, published: openPublished({ sql, archive, signerFor }) };
    return await statementNote({ sql, keyring: this.keyring, proofs }, { log: this.log, month });
  }

  /** By the key of seed 1, on runner 700; what it was answered. */
  async build(build: Build): Promise<string> {
    const { job: id, namespace, project = "50", minutes, finished, reason = "" } = build;
    this.#counter += 1;
    const job = { id, project_id: project, root_namespace_id: namespace };
    const usage = {
      duration_ms: String(minutes * 60_000),
      failure_reason: reason,
      finished_at: finished,
      started_at: instantText(Date.parse(finished) - minutes * 60_000),
    };
    const counter = String(this.#counter);
    const told = codes(await this.#door.submit(reported(1, this.log, { counter, job, usage })));
    if (told.join() === "accepted") this.#seen.push(seenOf(job, usage));
    return told.join();
  }

  /** The agent's next counter was used, and never comes. */
  lose(): void {
    this.#counter += 1;
  }

  async limit(namespace_id: string, limit: Partial<Body<"quota">>): Promise<void> {
    await this.put("quota", { ...QUOTA, namespace_id, ...limit });
  }

  async pack(namespace_id: string, pack: Partial<Body<"pack">>): Promise<void> {
    this.#version += 1;
    const source_version = String(this.#version);
    await this.put("pack", { ...PACK, namespace_id, source_version, ...pack });
  }

  /** @param namespace_id `""`: of all others */
  async account(namespace_id: string): Promise<void> {
    const effective_from = "2026-01-01T00:00:00.000Z";
    const who = { account_id: `a-${namespace_id}`, subscription_id: "s-1", namespace_id };
    const from = { source: "test", source_version: "1", effective_from };
    await this.put("account", { ...PERSON, ...who, ...from, approval: "" });
  }

  /** As of now; of another seed than 1 the key has reported nothing. */
  async attest(seed = 1): Promise<void> {
    const marks = { clock_offset_ms: "0", files: [], malformed: "0", rejected: "0", spool: "0" };
    const issued_at = instantText(this.#door.now);
    const counter = seed === 1 ? String(this.#counter) : "0";
    const payload = { ...marks, counter, issued_at, log: this.log };
    await this.put("attestation", { jws: sign(seed, TYP.attestation, payload) });
  }

  /** Whoever comes speaks for these runners, with the key of a seed of its own. */
  async join(seed: number, line: Partial<EnrolledRunner>): Promise<void> {
    await newAgent(this.#door, this.log, seed, [line]);
  }

  async cover(from: string, to: string, runner_id = "700"): Promise<void> {
    const index = BigInt(await this.coverElsewhere(from, to, runner_id));
    const { sql } = this.finishing;
    await transact(sql, async (tx) => await keepThrough(tx, this.log, BigInt(runner_id), index));
    await startMark(sql, this.log, "population");
    await this.match();
  }

  /** As recovery brings it: the jobs that it counts were in another database. */
  async coverElsewhere(from: string, to: string, runner_id = "700"): Promise<string> {
    const jobs = { jobs: "0", jobs_sha256: ZERO, runner_id, source: "test" };
    return await this.put("coverage", { ...PERSON, ...jobs, from, to });
  }

  /** What a reconciliation loop would have found by now. */
  async match(): Promise<void> {
    const { appender, clock, random, sql } = this.finishing;
    const bounds = { tolerance_ms: TOLERANCE_MS, grace_ms: GRACE_MS };
    const matching = { appender, bounds, clock, hash: sha256, random, sql };
    await take(matching, this.log, this.#seen, "upload");
    while ((await notice(matching, this.log)).entries > 0n);
    await matchDue(matching, this.log);
  }

  /** A correction of a namespace's month, as one person decides it. */
  async adjust(
    billing_month: string,
    line: Pick<AdjustmentLine, "namespace_id" | "usage_month" | "amount"> & Partial<AdjustmentLine>,
  ): Promise<void> {
    const of = { billing_month, credit_run: "", first_line: "0" };
    const lines = [{ entry: "", project_id: "", ...line, reverses: "" }];
    await this.put("adjustment", { ...DECIDED, ...of, lines });
  }

  async breakOf(month: string, of: Partial<Body<"break">> = {}): Promise<string> {
    const about = { job_id: "", kid: "", namespace_id: "", runner_id: "", usage: "" };
    const said = { detail: "", difference_ms: "0", fingerprint: ZERO, salt };
    return await this.put("break", {
      ...about,
      ...said,
      code: "missing-report",
      month,
      tracking: "hosted",
      ...of,
    });
  }

  async resolveBreak(index: string): Promise<void> {
    const body = { ...DECIDED, break: index, evidence: "", outcome: "accepted" } as const;
    await this.put("break_resolved", body);
  }

  async resolveConflicts(): Promise<void> {
    for (const { index } of ofKind(await this.entries(), "conflict")) {
      const body = { ...DECIDED, conflict: String(index), outcome: "stands" } as const;
      await this.put("conflict_resolved", body);
    }
  }

  async resolveHolds(): Promise<void> {
    for (const { index } of ofKind(await this.entries(), "hold")) {
      await this.put("hold_resolved", { ...DECIDED, hold: String(index), outcome: "rejected" });
    }
  }

  entries(): ReturnType<typeof entriesOf> {
    return entriesOf(this.#house.database.reader, this.log);
  }
}

function seenOf(
  { id: job_id, project_id }: Record<"id" | "project_id", string>,
  {
    duration_ms,
    finished_at,
    started_at,
  }: Record<"duration_ms" | "finished_at" | "started_at", string>,
): SeenJob {
  const named = { job_id, runner_id: "700", project_id, status: "success" };
  return { ...named, duration_ms: BigInt(duration_ms), finished_at, started_at };
}

async function told(attempt: () => Promise<unknown>): Promise<string[]> {
  try {
    await attempt();
    return ["done"];
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    const missing = (error.extension["missing"] ?? []) as readonly string[];
    return [error.code, ...missing.map((text) => text.replace(/:.*/, ""))];
  }
}
