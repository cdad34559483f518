/**
 * A witness over HTTP that keeps all it knows in memory: correct by core's judgement, unless a test has
 * it answer something else.
 */
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { cosignatureMessage } from "../../src/core/cosignature.ts";
import type { Hash } from "../../src/core/hash.ts";
import { formatVkey, parseVkey, type Signer, type Vkey } from "../../src/core/note.ts";
import { type Policy, parsePolicy } from "../../src/core/policy.ts";
import { signatureLine } from "../../src/core/signature-line.ts";
import { concat } from "../../src/core/text.ts";
import {
  type AddCheckpoint,
  judgeAddCheckpoint,
  parseAddCheckpoint,
} from "../../src/core/witness.ts";
import type { Witness } from "../../src/flow/log/submit.ts";
import { testKey, verifyByOpenssl } from "../signing.ts";
import { vkeyOf } from "./chain.ts";

export interface WireAnswer {
  status: number;
  body: string | Uint8Array;
  headers?: Record<string, string>;
}

/** What is answered instead of the honest answer; undefined: nothing, for ever. */
type Deviation = (honest: WireAnswer, asked: AddCheckpoint) => WireAnswer | undefined;

export class TestWitness implements Witness {
  readonly name: string;
  readonly vkey: Vkey;
  /** As a policy names the key. */
  readonly key: string;
  /** Every request that could be read, in order. */
  readonly asked: AddCheckpoint[] = [];
  /** What it cosigned last, by origin. */
  readonly last = new Map<string, { size: bigint; root: Hash }>();
  url = "";
  /** Seconds: its clock. */
  time = 1_793_491_200n;
  deviate: Deviation = (honest) => honest;
  readonly #signer: Signer;
  readonly #server: Server;

  readonly #logKeyOf: (log: string) => Vkey;

  /** @param logKeyOf the key of the logs that it follows, whatever their service's name */
  constructor(name: string, seed: number, logKeyOf = vkeyOf) {
    this.#logKeyOf = logKeyOf;
    const key = testKey(seed);
    this.name = name;
    this.#signer = { name: `${name}.test`, publicKey: key.publicKey, sign: (m) => key.sign(m) };
    this.key = formatVkey(this.#signer.name, key.publicKey, "cosignature");
    const vkey = parseVkey(this.key);
    if (vkey === undefined) throw new Error("witness: no key");
    this.vkey = vkey;
    this.#server = createServer(async (request, response) => {
      const answer = this.#answer(await textOf(request), request.url ?? "");
      if (answer === undefined) return;
      response.writeHead(answer.status, answer.headers);
      response.end(answer.body);
    });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/submit`;
    return this;
  }

  /** Takes no connection any more, and breaks those that there are. */
  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Over whatever text, and of whatever time: also what no honest witness signs. */
  cosign(text: string, time = this.time): string {
    const { name, publicKey, sign } = this.#signer;
    const stamp = new Uint8Array(8);
    new DataView(stamp.buffer).setBigUint64(0, time);
    const signature = concat(stamp, sign(cosignatureMessage(text, time)));
    return signatureLine(name, publicKey, signature, "cosignature");
  }

  #answer(body: string, path: string): WireAnswer | undefined {
    const asked = parseAddCheckpoint(body);
    if (path !== "/submit/add-checkpoint" || asked === undefined) return { status: 400, body: "" };
    this.asked.push(asked);
    const before = new Map(this.last);
    const answer = this.deviate(this.#honest(asked), asked);
    // Whoever does not say that it cosigned has not.
    if (answer !== undefined && answer.status !== 200) {
      this.last.clear();
      for (const [origin, tree] of before) this.last.set(origin, tree);
    }
    return answer;
  }

  #honest(asked: AddCheckpoint): WireAnswer {
    const judged = judgeAddCheckpoint(asked, {
      vkeysOf: (origin) => [this.#logKeyOf(origin.split("/")[1] ?? "")],
      last: (origin) => this.last.get(origin),
      verify: verifyByOpenssl,
    });
    if (judged.status === 200) {
      // Kept before it is answered, and nothing is awaited in between.
      this.last.set(judged.checkpoint.origin, judged.checkpoint);
      return { status: 200, body: this.cosign(judged.text) };
    }
    if (judged.status !== 409) return { status: judged.status, body: `${judged.problem}\n` };
    const headers = { "content-type": "text/x.tlog.size" };
    return { status: 409, body: `${judged.size}\n`, headers };
  }
}

/** A policy of these witnesses, `quorum` of whom must have signed; 0 for none. */
export function policyOf(witnesses: readonly TestWitness[], quorum: number): Policy {
  const names = witnesses.map(({ name }) => name).join(" ");
  const lines = witnesses.map(({ name, key, url }) => `witness ${name} ${key} ${url}`.trim());
  const rule =
    quorum === 0 ? ["quorum none"] : [`group enough ${quorum} ${names}`, "quorum enough"];
  const policy = parsePolicy(`${[...lines, ...rule].join("\n")}\n`);
  if ("problem" in policy) throw new Error(`policy: ${policy.problem}`);
  return policy;
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
