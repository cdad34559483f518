/** What agents signed in each bundle, read ahead of the judgement that needs the entries before it. */
import { thumbprint } from "../src/core/ed25519.ts";
import type { Entry } from "../src/core/entry.ts";
import { Claim, TYP } from "../src/core/report.ts";
import { decodeBase64url } from "../src/core/text.ts";
import type { UnknownEntry } from "./archive/block.ts";
import type { Block } from "./archive/walk.ts";
import { type Reader, type Reading, readStatement, type SignedText } from "./prefix/statement.ts";

/** A bundle's entries, each with what its JWS says, where its kind has an agent's. */
export interface Heard {
  heard: { entry: Entry | UnknownEntry; said: Reading | undefined }[];
  width: number;
}

/** Bundles that are being read while an earlier one is judged: enough for all threads. */
const AHEAD = 4;

export async function* hear(blocks: AsyncIterable<Block>, reader: Reader): AsyncGenerator<Heard> {
  const queue: Promise<Heard>[] = [];
  for await (const block of blocks) {
    const heard = hearBlock(block, reader);
    heard.catch(() => {}); // it is awaited below, after those before it
    queue.push(heard);
    const next = queue.length > AHEAD ? queue.shift() : undefined;
    if (next !== undefined) yield await next;
  }
  for (const heard of queue) yield await heard;
}

async function hearBlock({ entries, width }: Block, reader: Reader): Promise<Heard> {
  const texts: SignedText[] = [];
  for (const entry of entries) {
    learn(entry, reader);
    const text = textOf(entry);
    if (text !== undefined) texts.push(text);
  }
  const readings = (await reader.read(texts)).values();
  const heard = entries.map((entry) => ({
    entry,
    said: textOf(entry) === undefined ? undefined : readings.next().value,
  }));
  return { heard, width };
}

/** A key names itself: whether it may sign is judged later, by the entries before. */
function learn(entry: Entry | UnknownEntry, reader: Reader): void {
  if (entry.kind !== "key") return;
  const claim = readStatement(entry.body.jws, TYP.claim, Claim);
  const key = typeof claim === "string" ? undefined : decodeBase64url(claim.payload.public_key.x);
  if (key !== undefined && thumbprint(key) === entry.body.kid) reader.learn(entry.body.kid, key);
}

function textOf(entry: Entry | UnknownEntry): SignedText | undefined {
  switch (entry.kind) {
    case "usage":
    case "conflict":
    case "hold":
      return { kind: "report", text: entry.body.jws };
    case "attestation":
      return { kind: "attestation", text: entry.body.jws };
    default:
      return undefined;
  }
}
