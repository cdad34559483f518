/** A log in the making for tests of the domain: every entry is admitted, written, read and folded. */
import { admit } from "../../src/core/admit.ts";
import { thumbprint } from "../../src/core/ed25519.ts";
import {
  type Body,
  decodeEntry,
  type EnrolledRunner,
  type Entry,
  encodeEntry,
  GENESIS_PREV,
  type Kind,
} from "../../src/core/entry.ts";
import { type Hash, leafHash, sha256 } from "../../src/core/hash.ts";
import { canonical, type Json } from "../../src/core/json.ts";
import { compact, headerSegment } from "../../src/core/jws.ts";
import { Prefix } from "../../src/core/prefix.ts";
import { type Report, TYP } from "../../src/core/report.ts";
import { encodeBase64, encodeBase64url, encodeUtf8 } from "../../src/core/text.ts";
import { testKey } from "../signing.ts";

export const LOG = "00112233445566778899aabbccddeeff";
export const UUID = "5f1c6e7e-8f6d-4b6b-9d5b-0a1b2c3d4e5f";
/** When the next entry is written, unless a test says otherwise. */
export const NOW = "2026-11-20T12:00:00.000Z";
export const LONG_AGO = "2026-01-01T00:00:00.000Z";

const salt = encodeBase64(new Uint8Array(16));

export class History {
  readonly prefix: Prefix;
  #size = 1n;
  #prev: Hash;

  constructor(body: Partial<Body<"log">> = {}) {
    const entry: Entry = {
      at: LONG_AGO,
      body: { ...LOG_BODY, ...body },
      index: 0n,
      kind: "log",
      log: LOG,
      prev: GENESIS_PREV,
    };
    this.#prev = leafHash(encodeEntry(entry));
    this.prefix = new Prefix(entry);
  }

  /** Index of the new entry. Throws the `Problem` of an entry that is not admitted. */
  write<K extends Kind>(kind: K, body: Body<K>, at = NOW): string {
    admit(this.prefix, kind, body, at);
    const index = this.#size;
    const bytes = encodeEntry({ at, body, index, kind, log: LOG, prev: this.#prev } as Entry);
    const entry = decodeEntry(bytes);
    if (typeof entry === "string") throw new Error(entry);
    this.prefix.apply(entry);
    this.#prev = leafHash(bytes);
    this.#size += 1n;
    return String(index);
  }

  enrol(
    seed: number,
    lines: readonly Partial<EnrolledRunner>[] = [{}],
    namespaces: string[] = [],
    at = NOW,
  ): string {
    return this.write("enrolment", enrolmentBody(seed, lines, namespaces), at);
  }

  /** Enrols the runners and lets the key of this seed claim them; its kid. */
  agent(
    seed: number,
    lines: readonly Partial<EnrolledRunner>[] = [{}],
    namespaces: string[] = [],
    at = NOW,
  ): string {
    const enrolment = this.enrol(seed, lines, namespaces, at);
    this.write("key", keyBody(seed, enrolment), at);
    return kidOf(seed);
  }

  card(body: Partial<Body<"rate_card">> = {}, at = NOW): string {
    // Project factors are hosted runners' alone.
    const none = body.tracking === "self_managed" && { project_factors: {} };
    return this.write("rate_card", { ...CARD, ...none, ...body }, at);
  }

  classify(body: Partial<Body<"project_class">>, at = NOW): string {
    return this.write("project_class", { ...PROJECT_CLASS, ...body }, at);
  }

  limit(body: Partial<Body<"quota">>, at = NOW): string {
    return this.write("quota", { ...QUOTA, ...body }, at);
  }

  rotate(seed: number, successor: number, final_counter: string): string {
    return this.write("key_rotated", { jws: rotation(seed, successor, final_counter) });
  }

  revoke(seed: number, last_trusted_counter: string): string {
    return this.write("key_revoked", { ...REVOCATION, kid: kidOf(seed), last_trusted_counter });
  }

  close(month: string, at = NOW): string {
    return this.write("month_closing", { approval: "", by: "ops", month, salt }, at);
  }

  withdraw(closing: string): string {
    return this.write("month_closing_withdrawn", { approval: "", by: "ops", closing, salt });
  }
}

export function kidOf(seed: number): string {
  return thumbprint(testKey(seed).publicKey);
}

export function tokenSha256(seed: number): string {
  return encodeBase64(sha256(encodeUtf8(`token ${seed}`)));
}

/** A claim by the key of `seed`, for the token of another seed where the key is a successor. */
export function claim(seed: number, token = seed, log = LOG): string {
  return signed(seed, TYP.claim, {
    issued_at: NOW,
    log,
    public_key: jwk(seed),
    token_sha256: tokenSha256(token),
  });
}

export function rotation(
  seed: number,
  successor: number,
  final_counter: string,
  log = LOG,
): string {
  return signed(seed, TYP.rotation, {
    final_counter,
    issued_at: NOW,
    log,
    public_key: jwk(successor),
  });
}

export function attestation(seed: number, counter: string, log = LOG): string {
  const files = [{ name: "usage.jsonl", offset: "0" }];
  const marks = { clock_offset_ms: "-12", files, malformed: "0", rejected: "0", spool: "0" };
  return signed(seed, TYP.attestation, { ...marks, counter, issued_at: NOW, log });
}

export function signed(seed: number, typ: string, payload: Json): string {
  return compact(headerSegment(kidOf(seed), typ), canonical(payload), testKey(seed).sign);
}

export function jwk(seed: number): { crv: "Ed25519"; kty: "OKP"; x: string } {
  return { crv: "Ed25519", kty: "OKP", x: encodeBase64url(testKey(seed).publicKey) };
}

export function keyBody(seed: number, enrolment: string, token = seed): Body<"key"> {
  return { enrolment, jws: claim(seed, token), kid: kidOf(seed) };
}

export function enrolmentBody(
  seed: number,
  lines: readonly Partial<EnrolledRunner>[],
  namespaces: string[] = [],
): Body<"enrolment"> {
  return {
    by: "provisioner",
    claim_until: "2026-12-31T00:00:00.000Z",
    namespaces,
    runners: lines.map((line) => ({ ...RUNNER, ...line })),
    salt,
    token_sha256: tokenSha256(seed),
  };
}

/** A report of one minute that ended at noon, changed as a test needs it. */
export function report(
  change: {
    counter?: string;
    log?: string;
    uuid?: string;
    job?: Partial<Report["job"]>;
    usage?: Partial<Report["usage"]>;
  } = {},
): Report {
  return {
    counter: change.counter ?? "1",
    id: "1",
    issued_at: NOW,
    job: {
      id: "1",
      pipeline_id: "2",
      project_id: "50",
      root_namespace_id: "7",
      ...change.job,
    },
    log: change.log ?? LOG,
    runner: { executor: "docker", system_id: "s_1", uuid: change.uuid ?? UUID },
    usage: {
      duration_ms: "60000",
      failure_reason: "",
      finished_at: NOW,
      started_at: "2026-11-20T11:59:00.000Z",
      status: "success",
      ...change.usage,
    },
  };
}

export const RUNNER: EnrolledRunner = {
  effective_from: LONG_AGO,
  machine_type: "small",
  runner_id: "700",
  runner_type: "instance",
  tracking: "hosted",
  uuid: UUID,
};

const LOG_BODY: Body<"log"> = {
  billing_from: LONG_AGO,
  control: "single",
  duration_cap_ms: "2678400000",
  platform: "dotcom",
  salt,
  skew_ms: "300000",
  unique_id: "1298b121-eb2c-5d98-af71-ebcba276c7e9",
};

export const CARD: Body<"rate_card"> = {
  approval: "",
  by: "finance",
  effective_from: LONG_AGO,
  not_billable: ["runner_system_failure"],
  project_factors: {
    open_source: "0.5",
    open_source_fork: "0.008",
    gitlab_contribution: "monthly_minutes/300000",
  },
  runner_factors: { small: "1", large: "3", trial: "0.25" },
  salt,
  source: "",
  tracking: "hosted",
};

export const PROJECT_CLASS: Body<"project_class"> = {
  approval: "",
  by: "platform",
  class: "open_source",
  effective_from: LONG_AGO,
  project_id: "50",
  salt,
  source: "",
};

export const QUOTA: Body<"quota"> = {
  approval: "",
  beyond: "stop",
  by: "platform",
  cap: "",
  effective_from: LONG_AGO,
  grace_minutes: "1000",
  monthly_minutes: "10000",
  namespace_id: "7",
  salt,
  source: "gitlab",
  source_version: "1",
};

export const PACK: Body<"pack"> = {
  approval: "",
  by: "portal",
  expires_in: "2027-10-01",
  minutes: "5000",
  namespace_id: "7",
  pack_id: "order-1",
  purchased_in: "2026-11-01",
  salt,
  source: "portal",
  source_version: "1",
};

export const REVOCATION: Body<"key_revoked"> = {
  by: "operator",
  instant: NOW,
  kid: "",
  last_trusted_counter: "0",
  reason: "host stolen",
  salt,
};
