/**
 * A server that plays the service's side of the wire, over real HTTP: it verifies what it is sent
 * with core, remembers it as a log would, and misbehaves on order. The real service has its own tests
 * with a real agent; this one is here for what a real service never does.
 */
import { createHash, createPublicKey, verify } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { decodeEntry } from "../../src/core/entry.ts";
import { parseCanonical } from "../../src/core/json.ts";
import { readCompact } from "../../src/core/jws.ts";
import { Heartbeat, type RunningJob } from "../../src/core/quota/heartbeat.ts";
import { Attestation, Claim, fact, Report, Rotation } from "../../src/core/report.ts";
import type { Proved, TestLog } from "./log.ts";
import { RUNNER, UNIQUE_ID } from "./records.ts";

export const LOG = "0123456789abcdef0123456789abcdef";

/** What goes wrong with one request; `true` when it dealt with the response itself. */
export type Misbehaviour = (request: IncomingMessage, response: ServerResponse) => boolean;
export type Result = {
  code: string;
  digest: string;
  counter?: string;
  index?: string;
  leaf?: string;
};

export interface ProveRequest {
  receipt: string;
  results: Result[];
  since?: string;
}

export class FakeService {
  readonly serve = (request: IncomingMessage, response: ServerResponse): void => {
    this.#serve(request, response).catch((error: unknown) => response.destroy(error as Error));
  };
  readonly server = createServer(this.serve);
  /** Taken from the front, one for each request, before anything is read of it. */
  misbehaviours: Misbehaviour[] = [];
  /** Changes the answer to reports before it is sent. */
  distort = (results: Result[]): unknown[] => results;
  /** With a log, there are receipts and proofs; without, this is a service from before there were. */
  ledger: TestLog | undefined;
  /** Changes the receipt, or what is proven, before it is sent. */
  distortReceipt = (receipt: string, _results: Result[]): unknown => receipt;
  distortProof = (proved: Proved, _request: ProveRequest): unknown => proved;
  /** What becomes of a report that is answered so. */
  kindOf = (code: string): "usage" | "conflict" | "hold" =>
    code === "conflict" ? "conflict" : "usage";
  /** Paths, in order. */
  readonly asked: string[] = [];
  readonly proveRequests: ProveRequest[] = [];
  now = () => Date.now();
  uniqueId = UNIQUE_ID;
  log = LOG;
  claimRunners = [RUNNER];
  readonly keys = new Map<string, { x: string; enrolled: string }>();
  readonly reports: Report[] = [];
  readonly batches: number[] = [];
  readonly attestations: Attestation[] = [];
  readonly heartbeats: Heartbeat[] = [];
  /** Jobs that are beyond their quota. */
  readonly beyond = new Set<string>();
  /** Changes the answer to heartbeats before it is sent. */
  distortDecisions = (results: unknown[]): unknown => ({ results });
  readonly #answers = new Map<string, Result>();
  readonly #jobs = new Map<string, { fact: string; index: string; leaf?: string }>();
  readonly #replies = new Map<string, string>();

  async start(): Promise<string> {
    this.server.listen(0, "127.0.0.1");
    await once(this.server, "listening");
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, "close");
  }

  /** How often each job that was reported is among the log's entries. */
  timesOnLog(): number[] {
    const jobs = (this.ledger?.entries ?? []).flatMap((bytes) => {
      const entry = decodeEntry(bytes);
      if (typeof entry === "string" || entry.kind !== "usage") return [];
      const payload = entry.body.jws.split(".")[1] ?? "";
      return [Report.parse(JSON.parse(Buffer.from(payload, "base64url").toString())).job.id];
    });
    const sent = new Set(this.reports.map(({ job }) => job.id));
    return [...sent].map((id) => jobs.filter((job) => job === id).length);
  }

  /** Takes a key as one that was claimed; its file is in that folder. */
  enrol(kid: string, folder: string): void {
    const { x } = JSON.parse(readFileSync(join(folder, `${kid}.json`), "utf8"));
    this.keys.set(kid, { x, enrolled: "" });
  }

  /** Counters that came, by key, each once, ascending. */
  counters(kid: string): number[] {
    const all = this.reports
      .filter((_, i) => this.#kids[i] === kid)
      .map(({ counter }) => Number(counter));
    return [...new Set(all)].sort((a, b) => a - b);
  }

  readonly #kids: string[] = [];

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.asked.push(request.url ?? "");
    const misbehave = this.misbehaviours.shift();
    if (misbehave?.(request, response)) return;
    const body = await text(request);
    const [status, document] = this.#route(request.url ?? "", body);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(document));
  }

  #route(path: string, body: string): [number, unknown] {
    switch (path) {
      case "/v1/reports":
        return this.#takeReports(JSON.parse(body).reports);
      case "/v1/attestations":
        this.attestations.push(Attestation.parse(this.#open(body).payload));
        return [201, { index: "1", leaf: "" }];
      case "/v1/heartbeats":
        return this.#hear(JSON.parse(body).heartbeats);
      case "/v1/enrolments/claim":
        return this.#once(body, () => this.#claim(JSON.parse(body).claim));
      case "/v1/keys/rotate":
        return this.#once(body, () => this.#rotate(JSON.parse(body)));
      case "/v1/receipts/prove":
        return this.#prove(JSON.parse(body));
      default:
        return [404, { code: "not-found", title: "There is no such thing" }];
    }
  }

  #hear(texts: string[]): [number, unknown] {
    const results = texts.map((jws) => {
      const { kid, payload } = this.#open(jws);
      const { log, jobs } = Heartbeat.parse(payload);
      this.heartbeats.push(Heartbeat.parse(payload));
      const decisions = jobs.map(({ id, root_namespace_id }) => {
        const allowed = !this.beyond.has(id);
        const [job_status, reason] = allowed ? ["running", "within"] : ["failed", "beyond"];
        return { job_id: id, namespace_id: root_namespace_id, allowed, job_status, reason };
      });
      return { code: "heard", log, kid, decisions };
    });
    return [200, this.distortDecisions(results)];
  }

  /** What the newest heartbeat with that job says of it. */
  heardOf(id: string): RunningJob | undefined {
    return this.heartbeats.flatMap(({ jobs }) => jobs).findLast((job) => job.id === id);
  }

  /** The same request again is answered as before. */
  #once(body: string, act: () => unknown): [number, unknown] {
    const known = this.#replies.get(body);
    if (known !== undefined) return [200, JSON.parse(known)];
    const reply = act();
    this.#replies.set(body, JSON.stringify(reply));
    return [201, reply];
  }

  #claim(jws: string): unknown {
    const { kid, payload } = this.#open(jws);
    const { log, public_key } = Claim.parse(payload);
    this.keys.set(kid, { x: public_key.x, enrolled: jws });
    const { uniqueId: unique_id } = this;
    return {
      log,
      index: "1",
      leaf: "",
      kid,
      platform: "dotcom",
      unique_id,
      runners: this.claimRunners,
      ...(this.ledger && {
        origin: this.ledger.origin,
        vkey: this.ledger.vkey,
        receipt_vkey: this.ledger.receiptVkey,
      }),
    };
  }

  #rotate({ rotation, claim }: Record<"rotation" | "claim", string>): unknown {
    const old = this.#open(rotation);
    const { final_counter, public_key } = Rotation.parse(old.payload);
    const used = Math.max(0, ...this.counters(old.kid));
    if (Number(final_counter) < used) throw new Error("a final counter below one that was used");
    const { kid, payload } = this.#open(claim);
    if (Claim.parse(payload).public_key.x !== public_key.x) throw new Error("two successors");
    this.keys.set(kid, { x: public_key.x, enrolled: claim });
    return { log: this.log, index: "2", kid };
  }

  #takeReports(texts: string[]): [number, unknown] {
    if (texts.length < 1 || texts.length > 500) return [413, { code: "too-many" }];
    this.batches.push(texts.length);
    const judged = texts.map((jws) => this.#judge(jws));
    const results = this.distort(judged);
    const receipt = this.ledger?.receipt(judged, this.now());
    const given = receipt === undefined ? undefined : this.distortReceipt(receipt, judged);
    return [200, { log: this.log, results, receipt: given }];
  }

  #prove(request: ProveRequest): [number, unknown] {
    if (this.ledger === undefined) return [404, { code: "not-found" }];
    this.proveRequests.push(request);
    const proved = this.ledger.prove(request.results, request.since);
    return [200, this.distortProof(proved, request)];
  }

  /** Its answers so far, and so what stands. */
  forget(): void {
    this.#answers.clear();
    this.#jobs.clear();
  }

  /** As after a restore from a backup: what came later was never here. */
  rollBack(size: number): void {
    if (this.ledger === undefined) throw new Error("no log to roll back");
    this.ledger.entries.length = size;
    this.ledger.sealed = Math.min(this.ledger.sealed, size);
    for (const [digest, { index }] of this.#answers) {
      if (Number(index) >= size) this.#answers.delete(digest);
    }
    for (const [job, { index }] of this.#jobs) if (Number(index) >= size) this.#jobs.delete(job);
  }

  #judge(jws: string): Result {
    const digest = createHash("sha256").update(jws).digest("base64");
    const known = this.#answers.get(digest);
    if (known !== undefined) return known;
    const { kid, payload } = this.#open(jws);
    const report = Report.parse(payload);
    this.reports.push(report);
    this.#kids.push(kid);
    const factText = Buffer.from(fact(report)).toString("base64");
    const stands = this.#jobs.get(report.job.id);
    const code =
      stands === undefined ? "accepted" : stands.fact === factText ? "duplicate" : "conflict";
    const where =
      code === "duplicate" && stands !== undefined
        ? { index: stands.index, ...(stands.leaf !== undefined && { leaf: stands.leaf }) }
        : this.#append(jws, this.kindOf(code));
    if (code === "accepted") this.#jobs.set(report.job.id, { fact: factText, ...where });
    const { counter } = report;
    const result = { code, digest, ...(this.ledger && { counter }), ...where };
    this.#answers.set(digest, result);
    return result;
  }

  #append(jws: string, kind: "usage" | "conflict" | "hold"): { index: string; leaf?: string } {
    return this.ledger?.appendReport(jws, kind) ?? { index: String(this.reports.length) };
  }

  /** Throws unless the JWS is strict, and signed by its kid; a claim brings its key along. */
  #open(jws: string): { kid: string; payload: unknown } {
    const compact = readCompact(jws);
    const payload = compact && parseCanonical(compact.payload);
    if (compact === undefined || payload === undefined) throw new Error("no strict JWS");
    const own = Claim.safeParse(payload);
    const x = own.success ? own.data.public_key.x : this.keys.get(compact.kid)?.x;
    if (x === undefined) throw new Error("no such key");
    const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
    if (!verify(null, compact.input, key, compact.signature)) throw new Error("bad signature");
    return { kid: compact.kid, payload };
  }
}
