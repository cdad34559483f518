/**
 * A small log made with core alone, for tests of what reads logs: a valid chain with real signatures,
 * in the order of judgement of BYTES §3, loaded past the one door by the owner. Not for tests of the
 * door itself.
 */
import { rowsBeside } from "../src/core/beside.ts";
import { formatCheckpoint } from "../src/core/checkpoint.ts";
import { thumbprint } from "../src/core/ed25519.ts";
import {
  type Body,
  CONTROL_KINDS,
  type Entry,
  encodeEntry,
  GENESIS_PREV,
  type Kind,
} from "../src/core/entry.ts";
import { type Hash, leafHash } from "../src/core/hash.ts";
import { canonical } from "../src/core/json.ts";
import { judge, trackingOf } from "../src/core/judge.ts";
import { compact, headerSegment } from "../src/core/jws.ts";
import { formatVkey, type Signer, signNote } from "../src/core/note.ts";
import { Prefix } from "../src/core/prefix.ts";
import { fact, type Report, TYP } from "../src/core/report.ts";
import { encodeBase64, encodeBase64url, encodeHex, encodeUtf8 } from "../src/core/text.ts";
import { EMPTY_EDGE, edgeRoot, encodeEdge, grow } from "../src/core/tile.ts";
import { usageColumns } from "../src/core/typed.ts";
import { instantText } from "../src/core/unit.ts";
import { sha256 } from "../src/flow/report/signature.ts";
import { insertBeside } from "../src/store/beside.ts";
import type { Sql, Transaction } from "../src/store/connect.ts";
import { type Agent, type Build, reportOf, type TestRunner } from "./builds.ts";
import { testKey } from "./signing.ts";

export const LEDGER_START = Date.UTC(2026, 10, 1);
const SERVICE = "ledger.test";
const SALT = encodeBase64(new Uint8Array(16));
const SEALER = testKey(201);

interface Written {
  entry: Entry;
  bytes: Uint8Array;
  leaf: Hash;
}

/** Rows for `insert into … ${sql(rows)}`. */
type Cells = Record<string, string | bigint | Uint8Array | null>;

export class TestLedger {
  readonly log: string;
  readonly written: Written[] = [];
  readonly prefix: Prefix;
  /** Epoch ms of the next entry; a test moves it as it likes, forwards. */
  now: number;
  readonly #jobs = new Map<string, Cells & { index: bigint; fact: Hash }>();
  readonly #reports: Cells[] = [];
  readonly #keys: Cells[] = [];
  readonly #usages: Cells[] = [];
  #loaded = { entries: 0, jobs: 0, reports: 0, keys: 0 };

  constructor(log: string, start = LEDGER_START, body: Partial<Body<"log">> = {}) {
    this.log = log;
    this.now = start;
    const genesis = this.append("log", {
      billing_from: "2026-01-01T00:00:00.000Z",
      control: "single",
      duration_cap_ms: String(31 * 86_400_000),
      platform: "dotcom",
      salt: SALT,
      skew_ms: "300000",
      unique_id: log,
      ...body,
    });
    if (genesis.kind !== "log") throw new Error("ledger: no genesis");
    this.prefix = new Prefix(genesis);
  }

  get size(): bigint {
    return BigInt(this.written.length);
  }

  get vkey(): string {
    const { name, publicKey } = this.#signer;
    return formatVkey(name, publicKey);
  }

  get #signer(): Signer {
    return { name: `${SERVICE}/${this.log}`, ...SEALER };
  }

  append<K extends Kind>(kind: K, body: Body<K>): Entry {
    const prev = this.written.at(-1)?.leaf ?? GENESIS_PREV;
    const { log } = this;
    const entry = { at: instantText(this.now), body, index: this.size, kind, log, prev } as Entry;
    const bytes = encodeEntry(entry);
    this.written.push({ entry, bytes, leaf: leafHash(bytes, sha256) });
    if (kind !== "log") this.prefix.apply(entry);
    return entry;
  }

  /** An entry of a later version. */
  appendUnknown(kind: string): void {
    const { log } = this;
    const prev = this.written.at(-1)?.leaf ?? GENESIS_PREV;
    const entry = { at: instantText(this.now), body: {}, index: this.size, kind, log, prev };
    const bytes = encodeEntry(entry as unknown as Entry);
    this.written.push({ entry: entry as unknown as Entry, bytes, leaf: leafHash(bytes, sha256) });
  }

  /** An enrolment of these runners, and its claim by a key made from the seed. */
  enrol(seed: number, runners: readonly TestRunner[]): Agent {
    const token = encodeBase64(sha256(Uint8Array.of(seed)));
    const enrolment = this.append("enrolment", {
      by: "p_test",
      claim_until: "2099-01-01T00:00:00.000Z",
      namespaces: [],
      runners: runners.map((runner) => ({
        effective_from: "2020-01-01T00:00:00.000Z",
        machine_type: runner.machine_type,
        runner_id: runner.runner_id,
        runner_type: "instance" as const,
        tracking: runner.tracking,
        uuid: runner.uuid,
      })),
      salt: SALT,
      token_sha256: token,
    });
    const key = testKey(seed);
    const kid = thumbprint(key.publicKey);
    const claim = {
      issued_at: instantText(this.now),
      log: this.log,
      public_key: { crv: "Ed25519", kty: "OKP", x: encodeBase64url(key.publicKey) },
      token_sha256: token,
    };
    const jws = compact(headerSegment(kid, TYP.claim), canonical(claim), (m) => key.sign(m));
    const { index } = this.append("key", { enrolment: String(enrolment.index), jws, kid });
    this.#keys.push({ kid, log: this.log, index, public_key: key.publicKey });
    return { kid, key, counter: 0 };
  }

  card(tracking: "hosted" | "self_managed", runnerFactors: Record<string, string>): void {
    this.append("rate_card", {
      approval: "",
      by: "p_test",
      effective_from: "2020-01-01T00:00:00.000Z",
      not_billable: ["runner_system_failure"],
      project_factors: {},
      runner_factors: runnerFactors,
      salt: SALT,
      source: "test",
      tracking,
    });
  }

  closeMonth(month: string): void {
    this.append("month_closing", { approval: "", by: "p_test", month, salt: SALT });
  }

  sign(agent: Agent, build: Build): { report: Report; jws: string } {
    agent.counter += 1;
    const report = reportOf(this.log, this.now, agent, build);
    const header = headerSegment(agent.kid, TYP.report);
    return { report, jws: compact(header, canonical(report), (m) => agent.key.sign(m)) };
  }

  /**
   * Signs and judges a build as append does: usage, conflict, hold, or a disposition line. `alter`
   * makes a usage that no service writes.
   */
  report(
    agent: Agent,
    build: Build,
    alter: (body: Body<"usage">) => Body<"usage"> = (body) => body,
  ): Entry {
    const { report, jws } = this.sign(agent, build);
    const digest = sha256(encodeUtf8(jws));
    const measured = fact(report, sha256);
    const tracking = trackingOf(this.prefix, agent.kid, report);
    const key = `${tracking} ${report.job.id}`;
    const standing = this.#jobs.get(key);
    const answered = { kid: agent.kid, counter: BigInt(agent.counter), digest };
    if (standing && encodeHex(standing.fact) === encodeHex(measured)) {
      const line = {
        code: "duplicate",
        counter: String(agent.counter),
        digest: encodeBase64(digest),
        index: String(standing.index),
      };
      const entry = this.append("disposition", { kid: agent.kid, lines: [line], salt: SALT });
      return this.#answer(entry, { ...answered, code: "duplicate", index: standing.index });
    }
    const judged = judge(this.prefix, agent.kid, report, instantText(this.now));
    if (judged.kind === "hold") {
      const entry = this.append("hold", { code: judged.code, jws });
      return this.#answer(entry, { ...answered, code: judged.code, index: entry.index });
    }
    if (standing) {
      const entry = this.append("conflict", { jws, stands: String(standing.index) });
      return this.#answer(entry, { ...answered, code: "conflict", index: entry.index });
    }
    const entry = this.append("usage", alter({ ...judged.body, jws }));
    if (entry.kind !== "usage") throw new Error("ledger: not a usage");
    const { index } = entry;
    const job_id = BigInt(build.job);
    this.#usages[Number(index)] = {
      ...usageColumns(entry, report, BigInt(build.runner.runner_id)),
    };
    this.#jobs.set(key, {
      log: this.log,
      tracking: build.runner.tracking,
      job_id,
      index,
      fact: measured,
    });
    return this.#answer(entry, { ...answered, code: "accepted", index });
  }

  /** Writes what was appended since the last load, as append's transaction does. */
  async load(sql: Sql): Promise<void> {
    await sql.begin((tx) => this.loadIn(tx));
  }

  async loadIn(tx: Transaction): Promise<void> {
    const control: readonly string[] = CONTROL_KINDS;
    const last = this.written.at(-1);
    const controlIndex = this.written.findLastIndex(({ entry }) => control.includes(entry.kind));
    if (last === undefined) return;
    for (const { entry, bytes, leaf } of this.written.slice(this.#loaded.entries)) {
      const { log, index, kind, at, prev } = entry;
      const row = { log, index, kind, at, prev, leaf, bytes, ...this.#usages[Number(index)] };
      await tx`insert into entries ${tx(row)}`;
      await insertBeside(tx, log, rowsBeside(entry));
    }
    const jobs = [...this.#jobs.values()].slice(this.#loaded.jobs);
    for (const row of jobs) await tx`insert into jobs ${tx(row)}`;
    const reports = this.#reports.slice(this.#loaded.reports);
    for (const row of reports) await tx`insert into reports ${tx(row)}`;
    for (const row of this.#keys.slice(this.#loaded.keys)) await tx`insert into keys ${tx(row)}`;
    await tx`
      insert into heads (log, size, leaf, at, control_index)
      values (${this.log}, ${this.size}, ${last.leaf}, ${last.entry.at}, ${BigInt(controlIndex)})
      on conflict (log) do update
        set size = excluded.size, leaf = excluded.leaf, at = excluded.at,
            control_index = excluded.control_index`;
    this.#loaded = {
      entries: this.written.length,
      jobs: this.#jobs.size,
      reports: this.#reports.length,
      keys: this.#keys.length,
    };
  }

  /** The rows of a seal at `size`; the archive is left out. */
  async seal(sql: Sql, size = this.size, signer = this.#signer): Promise<void> {
    const leaves = this.written.slice(0, Number(size)).map(({ leaf }) => leaf);
    const { edge } = grow(EMPTY_EDGE, leaves, sha256);
    const root = edgeRoot(edge, sha256);
    const note = signNote(formatCheckpoint({ origin: signer.name, size, root }), [signer]);
    const seal = {
      log: this.log,
      size,
      leaf: leaves.at(-1) ?? GENESIS_PREV,
      edge: encodeEdge(edge),
    };
    await sql.begin(async (tx) => {
      await tx`
        insert into seals ${tx(seal)}
        on conflict (log) do update
          set size = excluded.size, leaf = excluded.leaf, edge = excluded.edge`;
      const sealed_at = instantText(this.now);
      await tx`insert into checkpoints ${tx({ log: this.log, size, root, note, sealed_at })}`;
    });
  }

  #answer(entry: Entry, row: Cells): Entry {
    this.#reports.push({ log: this.log, ...row, recorded: entry.index });
    return entry;
  }
}
