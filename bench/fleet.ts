/** Signed reports in any number: one fixed key per runner, counters that go on. */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { thumbprint } from "../src/core/ed25519.ts";
import { canonical } from "../src/core/json.ts";
import { compact, headerSegment } from "../src/core/jws.ts";
import { TYP } from "../src/core/report.ts";
import { rawPublicKey } from "../src/custody.ts";

const PKCS8_ED25519 = Buffer.from("302e020100300506032b657004220420", "hex");

export interface BenchKey {
  key: KeyObject;
  kid: string;
  publicKey: Uint8Array;
}

/** A key of a fixed seed: worthless outside a benchmark. */
export function benchKey(number: number): BenchKey {
  const seed = Buffer.alloc(32, number + 1);
  const key = createPrivateKey({
    key: Buffer.concat([PKCS8_ED25519, seed]),
    format: "der",
    type: "pkcs8",
  });
  const publicKey = rawPublicKey(key);
  return { key, kid: thumbprint(publicKey), publicKey };
}

export function signed({ key, kid }: BenchKey, typ: string, payload: object): string {
  return compact(headerSegment(kid, typ), canonical(payload as never), (input) =>
    sign(null, input, key),
  );
}

const MINUTE_MS = 60_000;

/**
 * The next reports of one log.
 * @param options.namespaces over how many root namespaces the builds spread
 */
export class Fleet {
  readonly #key: BenchKey;
  readonly #log: string;
  readonly #uuid: string;
  #counter = 0;

  constructor(log: string, key: BenchKey, uuid: string) {
    this.#key = key;
    this.#log = log;
    this.#uuid = uuid;
  }

  reports(count: number, options: { namespaces: number; finished: number }): string[] {
    return Array.from({ length: count }, () => this.#report(options));
  }

  #report({ namespaces, finished }: { namespaces: number; finished: number }): string {
    this.#counter += 1;
    const job = this.#counter;
    const finishedAt = new Date(finished + (job % 1000));
    return signed(this.#key, TYP.report, {
      counter: String(job),
      id: `018f5a74-fbe9-758c-b036-${String(job).padStart(12, "0")}`,
      issued_at: finishedAt.toISOString(),
      job: {
        id: String(9_000_000_000 + job),
        pipeline_id: String(3_000_000_000 + (job >> 2)),
        project_id: String(50_000 + (job % namespaces)),
        root_namespace_id: String(1_000 + (job % namespaces)),
      },
      log: this.#log,
      runner: { executor: "docker+machine", system_id: "s_1818892f902b", uuid: this.#uuid },
      usage: {
        duration_ms: String(MINUTE_MS),
        failure_reason: "",
        finished_at: finishedAt.toISOString(),
        started_at: new Date(finishedAt.getTime() - MINUTE_MS).toISOString(),
        status: "success",
      },
    });
  }
}
