/** Signed reports in any number: one fixed key per log, counters that go on. */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { thumbprint } from "../src/core/ed25519.ts";
import { canonical } from "../src/core/json.ts";
import { compact, headerSegment } from "../src/core/jws.ts";
import { fact, type Report, TYP } from "../src/core/report.ts";
import { encodeBase64url, encodeUtf8 } from "../src/core/text.ts";
import { rawPublicKey } from "../src/custody.ts";
import { tokenDigest } from "../src/flow/key/enrol.ts";
import { sha256 } from "../src/flow/report/signature.ts";
import type { SignedReport } from "../src/flow/report/verify.ts";

const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");
const MINUTE_MS = 60_000;
const SYSTEM_ID = "s_1818892f902b";
/** Above the ids of all jobs that have ended. */
const LIVE_JOBS = 20_000_000_000;

export const RUNNER = {
  uuid: "5d8f6f0e-6b64-4a39-9d8a-0f5d64a1c001",
  id: "701",
  machine_type: "linux-amd64-small",
} as const;

/** The runners of one host, and the next reports of its agent for one log. */
export class Fleet {
  readonly log: string;
  readonly kid: string;
  readonly #publicKey: Uint8Array;
  readonly #key: KeyObject;
  #counter = 0;

  /** @param seed of its key, 0 … 254: worthless outside a benchmark */
  constructor(log: string, seed = 0) {
    this.log = log;
    const der = Buffer.concat([PKCS8_ED25519, Buffer.alloc(32, seed + 1)]);
    this.#key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
    this.#publicKey = rawPublicKey(this.#key);
    this.kid = thumbprint(this.#publicKey);
  }

  claim(token: string): string {
    return this.#signed(TYP.claim, {
      issued_at: new Date().toISOString(),
      log: this.log,
      public_key: { crv: "Ed25519", kty: "OKP", x: encodeBase64url(this.#publicKey) },
      token_sha256: tokenDigest(token),
    });
  }

  /** One minute each, ended just now, spread evenly over as many root namespaces. */
  texts(count: number, namespaces: number): string[] {
    return Array.from({ length: count }, () => this.#signed(TYP.report, this.#report(namespaces)));
  }

  /** What its hosts say of jobs `from` … `to`−1, a JWS for each `each` of them; spread as reports are. */
  heartbeats(
    { from, to, each }: { from: number; to: number; each: number },
    { namespaces, elapsedMs }: { namespaces: number; elapsedMs: number },
  ): string[] {
    const texts: string[] = [];
    for (let first = from; first < to; first += each) {
      const jobs = Array.from({ length: Math.min(each, to - first) }, (_, i) => ({
        elapsed_ms: String(elapsedMs),
        id: String(LIVE_JOBS + first + i),
        ...placeOf(first + i, namespaces),
        timeout_ms: String(60 * MINUTE_MS),
      }));
      const issued_at = new Date().toISOString();
      const runner = { system_id: SYSTEM_ID, uuid: RUNNER.uuid };
      texts.push(this.#signed(TYP.heartbeat, { issued_at, jobs, log: this.log, runner }));
    }
    return texts;
  }

  /** As the verifier hands them to append. */
  verdicts(count: number, namespaces: number): SignedReport[] {
    return Array.from({ length: count }, () => {
      const report = this.#report(namespaces);
      const jws = this.#signed(TYP.report, report);
      const digest = sha256(encodeUtf8(jws));
      return { kind: "signed", jws, kid: this.kid, digest, report, fact: fact(report, sha256) };
    });
  }

  #signed(typ: string, payload: object): string {
    return compact(headerSegment(this.kid, typ), canonical(payload as never), (input) =>
      sign(null, input, this.#key),
    );
  }

  #report(namespaces: number): Report {
    this.#counter += 1;
    const job = this.#counter;
    const finished = Date.now() - (job % 1000);
    return {
      counter: String(job),
      id: `018f5a74-fbe9-758c-b036-${String(job).padStart(12, "0")}`,
      issued_at: new Date(finished).toISOString(),
      job: {
        id: String(9_000_000_000 + job),
        pipeline_id: String(3_000_000_000 + (job >> 2)),
        ...placeOf(job, namespaces),
      },
      log: this.log,
      runner: { executor: "docker+machine", system_id: SYSTEM_ID, uuid: RUNNER.uuid },
      usage: {
        duration_ms: String(MINUTE_MS),
        failure_reason: "",
        finished_at: new Date(finished).toISOString(),
        started_at: new Date(finished - MINUTE_MS).toISOString(),
        status: "success",
      },
    };
  }
}

/** The root namespace of a job, and its one project. */
export function placeOf(
  job: number,
  namespaces: number,
): { project_id: string; root_namespace_id: string } {
  const place = job % namespaces;
  return { project_id: String(50_000 + place), root_namespace_id: String(1_000 + place) };
}
