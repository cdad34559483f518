/**
 * What a single Redis server is asked in one turn: as many commands, in one write. Its client knows them as one
 * command that is sent and answered several times, since to make one of each takes longer than to carry it out.
 */
import { Command, type Redis } from "ioredis";

/**
 * @param script its SHA-1
 * @param args of the script's own, beside the one key
 */
export function writeCall(script: string, key: string, args: readonly string[]): string {
  let text = `*${args.length + 4}\r\n$7\r\nEVALSHA\r\n$${script.length}\r\n${script}\r\n$1\r\n1\r\n${bulk(key)}`;
  for (const arg of args) text += bulk(arg);
  return text;
}

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

/**
 * @param calls each of `writeCall`
 * @returns their replies, in order; an Error in place of each that failed
 */
export function sendTurn(client: Redis, calls: readonly string[]): Promise<unknown[]> {
  return new Promise((resolve) => {
    const turn = new Turn(calls, resolve);
    let text = "";
    const gathering = {
      isPipeline: true as const,
      destination: { redis: client },
      write: (call: string | Buffer) => {
        text += call;
      },
    };
    for (const _ of calls) client.sendCommand(turn, gathering);
    if (text !== "") client.stream.write(text);
  });
}

class Turn extends Command {
  readonly #calls: readonly string[];
  readonly #replies: unknown[] = [];
  #sent = 0;

  constructor(calls: readonly string[], answered: (replies: unknown[]) => void) {
    super("evalsha", [], { replyEncoding: "utf8" });
    this.#calls = calls;
    const take = (reply: unknown): void => {
      this.#replies.push(reply);
      if (this.#replies.length === calls.length) answered(this.#replies);
    };
    this.resolve = (reply) => take(this.transformReply(reply));
    this.reject = take;
  }

  override toWritable(): string {
    const call = this.#calls[this.#sent] ?? "";
    this.#sent += 1;
    return call;
  }
}
