/**
 * One run of the external signer: requests out and answers in, a line of JSON each, as many under way
 * as there are (docs/operations.md, "Keys"). Whatever goes wrong ends the run; nothing is asked twice.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import { z } from "zod";
import { decodeBase64, encodeBase64 } from "../core/text.ts";

export const KEY_NAMES = [
  "log",
  "next-log",
  "former-log",
  "receipt",
  "next-receipt",
  "former-receipt",
] as const;
export type KeyName = (typeof KEY_NAMES)[number];

/** Raw public keys by name; those that are next, or were before, need not be there. */
export type Described = Readonly<Partial<Record<KeyName, Uint8Array>>>;

const Base64 = z
  .string()
  .max(1_024)
  .transform((text) => decodeBase64(text));
const KeyText = Base64.pipe(z.instanceof(Uint8Array).refine(({ length }) => length === 32));
const Answer = z.union([
  z.strictObject({ id: z.string(), signature: Base64.pipe(z.instanceof(Uint8Array)) }),
  z.strictObject({
    id: z.string(),
    keys: z.strictObject({
      log: KeyText,
      "next-log": KeyText.exactOptional(),
      "former-log": KeyText.exactOptional(),
      receipt: KeyText,
      "next-receipt": KeyText.exactOptional(),
      "former-receipt": KeyText.exactOptional(),
    }),
  }),
  z.strictObject({ id: z.string(), error: z.string() }),
]);
type Answer = z.infer<typeof Answer>;

const LINE_CHARS_MAX = 8_192;
/** Without any answer for so long it hangs, however many wait. */
const SILENCE_MS = 5_000;
/** Until its first answer: it may have to open a device. */
const START_MS = 30_000;
const END_MS = 2_000;
export const UNDER_WAY_MAX = 256;

interface Waiting {
  resolve: (answer: Answer) => void;
  reject: (error: Error) => void;
}

export class SignerProcess {
  /** Why it is over, once nothing of it runs any more. */
  readonly over: Promise<Error>;
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Map<string, Waiting>();
  readonly #silenceMs: number;
  #begun = false;
  #lastId = 0;
  #reason: Error | undefined;
  #rest = "";
  #silence: NodeJS.Timeout | undefined;

  constructor([program, ...args]: readonly [string, ...string[]], silenceMs = SILENCE_MS) {
    this.#silenceMs = silenceMs;
    // Its standard error is its operator's to read; nothing of it is taken for an answer. In a group of
    // its own, so that Ctrl-C leaves it there for the last seal; it goes when its input ends.
    const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
    this.#child = child;
    this.over = new Promise((resolve) => {
      child.once("error", (error) => resolve(this.end(error)));
      child.once("exit", (code, signal) => {
        resolve(this.end(new Error(`signer: it ended (${signal ?? code})`)));
      });
    });
    child.stdin.on("error", (error) => this.end(error));
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => this.#read(chunk));
  }

  get underWay(): number {
    return this.#waiting.size;
  }

  async describe(): Promise<Described> {
    const answer = await this.#ask({ describe: true });
    if (!("keys" in answer)) throw this.end(new Error("signer: it describes no keys"));
    return answer.keys;
  }

  /** Who signed what is the caller's to verify. */
  async sign(key: KeyName, message: Uint8Array): Promise<Uint8Array> {
    const answer = await this.#ask({ key, message: encodeBase64(message) });
    if ("signature" in answer) return answer.signature;
    throw new Error(`signer: ${key} was not signed with`);
  }

  /** Rejects all that wait, and kills what may still run. Returns the reason that counts. */
  end(reason: Error): Error {
    if (this.#reason !== undefined) return this.#reason;
    this.#reason = reason;
    clearTimeout(this.#silence);
    this.#child.kill("SIGKILL");
    for (const { reject } of this.#waiting.values()) reject(reason);
    this.#waiting.clear();
    return reason;
  }

  /** Lets it end by itself, as its input has ended; killed if it takes too long. */
  async close(): Promise<void> {
    this.#child.stdin.end();
    const late = setTimeout(() => this.end(new Error("signer: killed")), END_MS);
    await this.over;
    clearTimeout(late);
  }

  #ask(request: object): Promise<Answer> {
    if (this.#reason !== undefined) return Promise.reject(this.#reason);
    const id = String(this.#lastId);
    this.#lastId += 1;
    const answer = new Promise<Answer>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
    this.#child.stdin.write(`${JSON.stringify({ id, ...request })}\n`);
    if (this.#silence === undefined) this.#listen();
    return answer;
  }

  /** From now on, as long as anything waits. */
  #listen(): void {
    clearTimeout(this.#silence);
    this.#silence = undefined;
    if (this.#waiting.size === 0) return;
    const hangs = (): void => void this.end(new Error("signer: it does not answer"));
    const patience = this.#begun ? this.#silenceMs : START_MS;
    this.#silence = setTimeout(hangs, patience).unref();
  }

  #read(chunk: string): void {
    const lines = `${this.#rest}${chunk}`.split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#take(line);
    if (this.#rest.length > LINE_CHARS_MAX) this.end(new Error("signer: a line without an end"));
  }

  #take(line: string): void {
    const answer = Answer.safeParse(parsed(line)).data;
    const waiting = answer && this.#waiting.get(answer.id);
    if (answer === undefined || waiting === undefined) {
      this.end(new Error("signer: an answer to nothing that was asked"));
      return;
    }
    this.#waiting.delete(answer.id);
    this.#begun = true;
    this.#listen();
    waiting.resolve(answer);
  }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
