/**
 * What a thread of the verifier does: signatures, shapes and digests of reports, everything that needs no
 * database. Keys that it does not know it asks for once, and then knows for ever: a kid names one key.
 */
import type { MessagePort } from "node:worker_threads";
import type { ProblemCode } from "../../core/problem.ts";
import { fact, Report, TYP } from "../../core/report.ts";
import { type Examined, examine, type Refused } from "./examine.ts";
import { sha256 } from "./signature.ts";

/** To the thread. `keys` answers an `ask`; of a kid that is missing there is none. */
export type Order =
  | { kind: "verify"; id: number; texts: readonly string[] }
  | { kind: "teach"; id: number; keys: ReadonlyMap<string, Uint8Array> };

/** From the thread. Reports do not cross: the other side has their texts, and parsing is cheaper. */
export type Reply =
  | { kind: "ask"; id: number; kids: readonly string[] }
  | { kind: "verdicts"; id: number; judged: readonly Judged[]; hashes: Uint8Array };

/** In the order of the texts: the kid of a good report, or why it is none. */
export type Judged = string | { code: ProblemCode; kid?: string; counter?: string; log?: string };

/** Bytes of `hashes` for each text: its digest, and the fact of a good report. */
export const HASHES_STRIDE = 64;

type Result = Examined<Report> | Refused;

/** Answers every order that comes, until the port is closed. */
export function judge(port: MessagePort): void {
  const keys = new Map<string, Uint8Array>();
  const waiting = new Map<number, { texts: readonly string[]; results: Result[] }>();

  const examined = (text: string): Result =>
    examine(text, TYP.report, Report, (jws) => keys.get(jws.kid));

  const answer = (id: number, results: readonly Result[]): void => {
    const hashes = new Uint8Array(results.length * HASHES_STRIDE);
    const judged = results.map((result, i) => {
      hashes.set(result.digest, i * HASHES_STRIDE);
      if (result.kind === "refused") {
        const { kind: _, digest: __, jws: ___, ...refusal } = result;
        return refusal;
      }
      hashes.set(fact(result.payload, sha256), i * HASHES_STRIDE + 32);
      return result.kid;
    });
    const reply: Reply = { kind: "verdicts", id, judged, hashes };
    port.postMessage(reply, [hashes.buffer]);
  };

  port.on("message", (order: Order) => {
    if (order.kind === "verify") {
      const unknown = new Set<string>();
      const results = order.texts.map((text) =>
        examine(text, TYP.report, Report, (jws) => {
          const key = keys.get(jws.kid);
          if (key === undefined) unknown.add(jws.kid);
          return key;
        }),
      );
      if (unknown.size === 0) return answer(order.id, results);
      waiting.set(order.id, { texts: order.texts, results });
      const reply: Reply = { kind: "ask", id: order.id, kids: [...unknown] };
      return port.postMessage(reply);
    }
    for (const [kid, key] of order.keys) keys.set(kid, key);
    const { texts, results } = waiting.get(order.id) ?? { texts: [], results: [] };
    waiting.delete(order.id);
    return answer(
      order.id,
      results.map((result, i) =>
        result.kind === "refused" && result.code === "unknown-key"
          ? examined(texts[i] ?? "")
          : result,
      ),
    );
  });
}
