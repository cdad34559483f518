/** A file on its way is judged by its hash before whoever takes it gives it a name. */
import { createHash } from "node:crypto";
import { encodeUtf8 } from "../../core/text.ts";

/** A file of a text. */
export async function* whole(text: string): AsyncGenerator<Uint8Array> {
  yield encodeUtf8(text);
}

/** The same chunks. `judge` gets their SHA-256 in base64 behind the last one; what it throws ends the write. */
export async function* hashed(
  chunks: AsyncIterable<Uint8Array>,
  judge: (sha256: string) => void,
): AsyncGenerator<Uint8Array> {
  const digest = createHash("sha256");
  for await (const chunk of chunks) {
    digest.update(chunk);
    yield chunk;
  }
  judge(digest.digest("base64"));
}

/**
 * The same chunks, the last of them once `judge` has their hash: whoever takes a file while it is read, and gives it
 * no name, is left without its end where that throws.
 */
export async function* withheld(
  chunks: AsyncIterable<Uint8Array>,
  judge: (sha256: string) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const digest = createHash("sha256");
  let last: Uint8Array | undefined;
  for await (const chunk of chunks) {
    if (last !== undefined) yield last;
    digest.update(chunk);
    last = chunk;
  }
  await judge(digest.digest("base64"));
  if (last !== undefined) yield last;
}
