/** Logs for the auditor's tests: honest entries by core alone, and whatever a test wants them to say. */
import { sha256 } from "../../audit/native.ts";
import { thumbprint } from "../../src/core/ed25519.ts";
import {
  type Body,
  type EnrolledRunner,
  type Entry,
  encodeEntry,
  GENESIS_PREV,
  type Kind,
} from "../../src/core/entry.ts";
import { type Hash, leafHash } from "../../src/core/hash.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { judge, trackingOf } from "../../src/core/judge.ts";
import { compact, headerSegment } from "../../src/core/jws.ts";
import { Prefix } from "../../src/core/prefix.ts";
import { fact, type Report, TYP } from "../../src/core/report.ts";
import { encodeBase64, encodeBase64url, encodeHex, encodeUtf8 } from "../../src/core/text.ts";
import { type TestKey, testKey } from "../signing.ts";

export const LOG_ID = "00112233445566778899aabbccddeeff";
export const OTHER_LOG_ID = "ffeeddccbbaa99887766554433221100";
export const NOW = "2026-11-20T12:00:00.000Z";
export const LONG_AGO = "2026-01-01T00:00:00.000Z";
export const SALT = encodeBase64(new Uint8Array(16));
export const TOKEN = encodeBase64(sha256(Uint8Array.of(2)));

export interface Agent {
  kid: string;
  key: TestKey;
  counter: bigint;
}

/** What a test says of a build; the rest is filled in. */
export interface Build {
  job?: string;
  project?: string;
  namespace?: string;
  uuid?: string;
  duration?: string;
  reason?: string;
  finished?: string;
  counter?: string;
  log?: string;
}

/** A runner's line of an enrolment. */
export function line(uuid: string, said: Partial<EnrolledRunner> = {}): EnrolledRunner {
  return {
    effective_from: LONG_AGO,
    machine_type: "small",
    runner_id: "7",
    runner_type: "instance",
    tracking: "hosted",
    uuid,
    ...said,
  };
}

export function card(said: Partial<Body<"rate_card">> = {}): Body<"rate_card"> {
  return {
    approval: "",
    by: "finance",
    effective_from: LONG_AGO,
    not_billable: ["runner_system_failure"],
    project_factors: { oss: "0.5", fork: "1/125", contribution: "monthly_minutes/300000" },
    runner_factors: { small: "1", large: "3", "*": "2" },
    salt: SALT,
    source: "test",
    tracking: "hosted",
    ...(said.tracking === "self_managed" && { project_factors: {} }),
    ...said,
  };
}

export function limit(namespace: string, minutes: string, version = "1"): Body<"quota"> {
  return {
    approval: "",
    beyond: "stop",
    by: "platform",
    cap: "",
    effective_from: LONG_AGO,
    grace_minutes: "1000",
    monthly_minutes: minutes,
    namespace_id: namespace,
    salt: SALT,
    source: "plan",
    source_version: version,
  };
}

/** A version of the one pack. */
export function pack(version: string): Body<"pack"> {
  return {
    approval: "",
    by: "portal",
    expires_in: "2027-10-01",
    minutes: "5000",
    namespace_id: "1",
    pack_id: "order-7",
    purchased_in: "2026-11-01",
    salt: SALT,
    source: "portal",
    source_version: version,
  };
}

/** An enrolment that nobody has claimed, and the digest of its token. */
export function enrolment(said: Partial<Body<"enrolment">> = {}): Body<"enrolment"> {
  const body = {
    by: "operator",
    claim_until: NOW,
    namespaces: [],
    runners: [line("x")],
    salt: SALT,
  };
  return { ...body, token_sha256: TOKEN, ...said };
}

export class TestLog {
  readonly id: string;
  readonly entries: Uint8Array[] = [];
  readonly leaves: Hash[] = [];
  readonly prefix: Prefix;
  at = NOW;
  readonly #standing = new Map<string, { index: string; fact: string }>();

  constructor(id = LOG_ID, said: Partial<Body<"log">> = {}) {
    this.id = id;
    const body: Body<"log"> = {
      billing_from: LONG_AGO,
      control: "single",
      duration_cap_ms: "2678400000",
      platform: "dotcom",
      salt: SALT,
      skew_ms: "300000",
      unique_id: "instance",
      ...said,
    };
    const entry = { at: NOW, body, index: 0n, kind: "log", log: id, prev: GENESIS_PREV } as const;
    this.put(encodeEntry(entry));
    this.prefix = new Prefix(entry);
  }

  get size(): number {
    return this.entries.length;
  }

  get head(): Hash {
    return this.leaves.at(-1) ?? GENESIS_PREV;
  }

  /** Bytes as they are. */
  put(bytes: Uint8Array): void {
    this.entries.push(bytes);
    this.leaves.push(leafHash(bytes, sha256));
  }

  /** An entry in the right place that says whatever it says: its index. The prefix does not see it. */
  force<K extends Kind>(kind: K, body: Body<K>): string {
    this.put(encodeEntry(this.#entry(kind, body)));
    return String(this.size - 1);
  }

  /** An entry that the prefix takes in as well. */
  write<K extends Kind>(kind: K, body: Body<K>): string {
    const entry = this.#entry(kind, body);
    this.prefix.apply(entry);
    this.put(encodeEntry(entry));
    return String(entry.index);
  }

  enrol(seed: number, runners: EnrolledRunner[], namespaces: string[] = []): Agent {
    const token_sha256 = encodeBase64(sha256(Uint8Array.of(seed)));
    const enrolment = this.write("enrolment", {
      by: "operator",
      claim_until: "2026-12-31T00:00:00.000Z",
      namespaces,
      runners,
      salt: SALT,
      token_sha256,
    });
    const agent = agentOf(seed);
    this.write("key", { enrolment, jws: this.claim(agent, token_sha256), kid: agent.kid });
    return agent;
  }

  claim({ kid, key }: Agent, token_sha256: string): string {
    const public_key = jwk(key);
    const claim = { issued_at: this.at, log: this.id, public_key, token_sha256 };
    return sign(kid, key, TYP.claim, claim);
  }

  rotation({ kid, key }: Agent, successor: Agent, final_counter: string): string {
    const public_key = jwk(successor.key);
    const rotation = { final_counter, issued_at: this.at, log: this.id, public_key };
    return sign(kid, key, TYP.rotation, rotation);
  }

  /** The agent's next report, signed. */
  report(agent: Agent, build: Build = {}): { jws: string; report: Report } {
    agent.counter += 1n;
    const finished_at = build.finished ?? this.at;
    const duration_ms = build.duration ?? "60000";
    const report: Report = {
      counter: build.counter ?? String(agent.counter),
      id: "r",
      issued_at: this.at,
      job: {
        id: build.job ?? String(this.size),
        pipeline_id: "1",
        project_id: build.project ?? "10",
        root_namespace_id: build.namespace ?? "1",
      },
      log: build.log ?? this.id,
      runner: { executor: "docker", system_id: "s", uuid: build.uuid ?? "runner-a" },
      usage: {
        duration_ms,
        failure_reason: build.reason ?? "",
        finished_at,
        started_at: finished_at,
        status: "success",
      },
    };
    return { jws: sign(agent.kid, agent.key, TYP.report, report), report };
  }

  /** Reports a build and writes what the order of judgement makes of it: its index. */
  submit(agent: Agent, build: Build = {}): string {
    const { jws, report } = this.report(agent, build);
    const key = `${trackingOf(this.prefix, agent.kid, report)} ${report.job.id}`;
    const standing = this.#standing.get(key);
    const measured = encodeHex(fact(report, sha256));
    if (standing?.fact === measured) {
      return this.dispose(agent, [["duplicate", report.counter, jws, standing.index]]);
    }
    const judged = judge(this.prefix, agent.kid, report, this.at);
    if (judged.kind === "hold") return this.write("hold", { code: judged.code, jws });
    if (standing !== undefined) return this.write("conflict", { jws, stands: standing.index });
    const index = this.write("usage", { ...judged.body, jws });
    this.#standing.set(key, { index, fact: measured });
    return index;
  }

  /** The usage entry's body that an honest service would write. */
  usage(agent: Agent, build: Build = {}): Body<"usage"> {
    const { jws, report } = this.report(agent, build);
    const judged = judge(this.prefix, agent.kid, report, this.at);
    if (judged.kind === "hold") throw new Error(`held: ${judged.code}`);
    return { ...judged.body, jws };
  }

  /** Lines are code, counter, text and the index that stands. */
  dispose({ kid }: Agent, lines: [string, string, string, string][]): string {
    return this.write("disposition", {
      kid,
      lines: lines.map(([code, counter, text, index]) => ({
        code,
        counter,
        digest: encodeBase64(sha256(encodeUtf8(text))),
        index,
      })),
      salt: SALT,
    });
  }

  attest(agent: Agent, counter = String(agent.counter), spool = "0"): string {
    const attestation = {
      clock_offset_ms: "-3",
      counter,
      files: [{ name: "usage.jsonl", offset: "1" }],
      issued_at: this.at,
      log: this.id,
      malformed: "2",
      rejected: "1",
      spool,
    };
    return this.write("attestation", {
      jws: sign(agent.kid, agent.key, TYP.attestation, attestation),
    });
  }

  #entry<K extends Kind>(kind: K, body: Body<K>): Entry {
    const index = BigInt(this.size);
    return { at: this.at, body, index, kind, log: this.id, prev: this.head } as Entry;
  }
}

export function agentOf(seed: number): Agent {
  const key = testKey(seed);
  return { kid: thumbprint(key.publicKey), key, counter: 0n };
}

export function sign(kid: string, key: TestKey, typ: string, payload: Json): string {
  return compact(headerSegment(kid, typ), canonical(payload), (input) => key.sign(input));
}

function jwk({ publicKey }: TestKey): { crv: string; kty: string; x: string } {
  return { crv: "Ed25519", kty: "OKP", x: encodeBase64url(publicKey) };
}
