/**
 * Keys that never enter this process: one external command holds them, is started once and again
 * whenever it ends, and is believed only what verifies.
 */
import { randomBytes } from "node:crypto";
import type { SignerCommand } from "../config.ts";
import { ConfigError } from "../config-error.ts";
import { admissibleKey, verdict } from "../core/ed25519.ts";
import { encodeHex, encodeUtf8, equal } from "../core/text.ts";
import type { SigningKey } from "../flow/key/signing-key.ts";
import { type HeldKeys, signerUnavailable } from "../flow/key/standing.ts";
import { verifySignature } from "../flow/report/signature.ts";
import {
  type Described,
  KEY_NAMES,
  type KeyName,
  SignerProcess,
  UNDER_WAY_MAX,
} from "./signer-process.ts";

export interface SignerOptions {
  words: SignerCommand["words"];
  /** Why it is away now, each time. */
  failed: (error: Error) => void;
  /** How long it may be silent while something waits. */
  silenceMs?: number;
  /** Before it is started again: at first, and doubled up to the second. */
  backoffMs?: readonly [number, number];
}

const BACKOFF_MS = [100, 10_000] as const;
const PROBE_BYTES = 16;

/** @throws ConfigError when it cannot be started, has not both keys, or does not sign with them */
export async function openSigner(options: SignerOptions): Promise<Signer> {
  const first = new SignerProcess(options.words, options.silenceMs);
  try {
    return new Signer(options, first, await proven(first));
  } catch (error) {
    const { message } = first.end(error as Error);
    throw new ConfigError(`SIGNER_COMMAND: ${message}`, { cause: error });
  }
}

export class Signer implements HeldKeys {
  readonly checkpoint: readonly SigningKey[];
  readonly receipt: readonly SigningKey[];
  readonly former: NonNullable<HeldKeys["former"]>;
  readonly #options: SignerOptions;
  readonly #keys: Described;
  /** Absent while none has proven itself. */
  #running: SignerProcess | undefined;
  #starting: SignerProcess | undefined;
  #closed = false;
  #again: NodeJS.Timeout | undefined;
  #wait: number;

  constructor(options: SignerOptions, running: SignerProcess, keys: Described) {
    this.#options = options;
    this.#keys = keys;
    this.checkpoint = this.#held("log", "next-log");
    this.receipt = this.#held("receipt", "next-receipt");
    const [checkpoint] = this.#held("former-log");
    const [receipt] = this.#held("former-receipt");
    this.former = { checkpoint, receipt };
    this.#wait = this.#backoff[0];
    this.#follow(running);
  }

  available(): boolean {
    return this.#running !== undefined && this.#running.underWay < UNDER_WAY_MAX;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#again);
    await Promise.all([this.#running?.close(), this.#starting?.close()]);
  }

  get #backoff(): readonly [number, number] {
    return this.#options.backoffMs ?? BACKOFF_MS;
  }

  #held(...names: KeyName[]): SigningKey[] {
    return names.flatMap((name) => {
      const publicKey = this.#keys[name];
      if (publicKey === undefined) return [];
      return [{ publicKey, sign: (message) => this.#sign(name, publicKey, message) }];
    });
  }

  async #sign(name: KeyName, publicKey: Uint8Array, message: Uint8Array): Promise<Uint8Array> {
    const process = this.#running;
    if (process === undefined) throw signerUnavailable(new Error("signer: away"));
    if (!this.available()) throw signerUnavailable(new Error("signer: too much at once"));
    const signature = await process.sign(name, message).catch((error: Error) => {
      throw signerUnavailable(error);
    });
    if (!verdict(signature, message, publicKey, verifySignature)) {
      throw signerUnavailable(process.end(new Error(`signer: a wrong signature by ${name}`)));
    }
    this.#wait = this.#backoff[0];
    return signature;
  }

  #follow(process: SignerProcess): void {
    this.#running = process;
    void process.over.then((reason) => {
      this.#running = undefined;
      this.#failed(reason);
    });
  }

  #failed(reason: Error): void {
    if (this.#closed) return;
    this.#options.failed(reason);
    this.#again = setTimeout(() => void this.#restart(), this.#wait).unref();
    this.#wait = Math.min(this.#wait * 2, this.#backoff[1]);
  }

  async #restart(): Promise<void> {
    const process = new SignerProcess(this.#options.words, this.#options.silenceMs);
    this.#starting = process;
    try {
      const described = await proven(process);
      const same = KEY_NAMES.every((name) => sameKey(described[name], this.#keys[name]));
      if (!same) throw new Error("signer: it came back with other keys");
      this.#follow(process);
    } catch (error) {
      this.#failed(process.end(error as Error));
    } finally {
      this.#starting = undefined;
    }
  }
}

/** Its keys, each of which has just signed. No note, JWS or statement of any kind looks like a probe. */
async function proven(process: SignerProcess): Promise<Described> {
  const described = await process.describe();
  const probe = encodeUtf8(`minutebook signer probe ${encodeHex(randomBytes(PROBE_BYTES))}`);
  for (const name of KEY_NAMES) {
    const publicKey = described[name];
    if (publicKey === undefined) continue;
    if (!admissibleKey(publicKey)) throw new Error(`signer: ${name} is no admissible key`);
    const signature = await process.sign(name, probe);
    if (!verdict(signature, probe, publicKey, verifySignature)) {
      throw new Error(`signer: ${name} does not sign for the key that it describes`);
    }
  }
  return described;
}

function sameKey(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : equal(a, b);
}
