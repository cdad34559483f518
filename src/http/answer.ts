/** JSON answers; nothing that is about usage may lie in anybody's cache. */
import { encodeBase64 } from "../core/text.ts";
import type { Receipt } from "../flow/log/commit-entry.ts";

const HEADERS = { "content-type": "application/json", "cache-control": "no-store" };

export function answer(status: 200 | 201 | 202 | 503, body: object): Response {
  return new Response(JSON.stringify(body), { status, headers: HEADERS });
}

/** To the byte. */
export function answerText(text: string, type: string): Response {
  return new Response(text, { headers: { ...HEADERS, "content-type": type } });
}

/** Where the entry stands, with `members` beside it; 200 says that it stood already. */
export function answerReceipt({ index, leaf, written }: Receipt, members: object = {}): Response {
  const place = { index: String(index), leaf: encodeBase64(leaf) };
  return answer(written ? 201 : 200, { ...members, ...place });
}
