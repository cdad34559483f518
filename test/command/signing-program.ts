/**
 * A signer as docs/operations.md describes it, which also does what signers must not: what a message
 * says decides. `signing-program.ts STARTS [SEED]`: it notes its process id in the file STARTS at each
 * start, and from the second on its key of receipts is the one of SEED.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { testKey } from "../signing.ts";

const [starts = "", seed = "72"] = process.argv.slice(2);
const mark = `${process.pid}\n`;
appendFileSync(starts, mark);
const again = readFileSync(starts, "utf8") !== mark;
const KEYS = {
  log: testKey(71),
  "next-log": testKey(73),
  receipt: testKey(again ? Number(seed) : 72),
};

interface Request {
  id: string;
  describe?: true;
  key?: keyof typeof KEYS;
  message?: string;
}

function answer(document: object): void {
  process.stdout.write(`${JSON.stringify(document)}\n`);
}

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");
const held: (() => void)[] = [];

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, describe, key = "log", message = "" } = JSON.parse(line) as Request;
  if (describe) {
    const keys = Object.entries(KEYS).map(([name, { publicKey }]) => [name, base64(publicKey)]);
    return answer({ id, keys: Object.fromEntries(keys) });
  }
  const bytes = Buffer.from(message, "base64");
  const signature = KEYS[key].sign(bytes);
  switch (bytes.toString()) {
    case "die":
      return process.exit(3);
    case "lie":
      signature[5] = (signature[5] ?? 0) ^ 1;
      return answer({ id, signature: base64(signature) });
    case "refuse":
      return answer({ id, error: "the slot is locked" });
    case "babble":
      process.stdout.write("I am a signer\n");
      return undefined;
    case "flood":
      process.stdout.write("x".repeat(100_000));
      return undefined;
    case "hush":
      return undefined;
    case "later":
      held.push(() => answer({ id, signature: base64(signature) }));
      return undefined;
    case "now":
      answer({ id, signature: base64(signature) });
      for (const late of held.splice(0)) late();
      return undefined;
    default:
      return answer({ id, signature: base64(signature) });
  }
});
