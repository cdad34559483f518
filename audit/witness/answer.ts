/** What a witness answers to `add-checkpoint` (C2SP tlog-witness). */
import { cosign } from "../../src/core/cosignature.ts";
import { linesOf, noteOf, type Signer, type Vkey } from "../../src/core/note.ts";
import { decodeUtf8 } from "../../src/core/text.ts";
import {
  type AddCheckpoint,
  type AddCheckpointAnswer,
  judgeAddCheckpoint,
  parseAddCheckpoint,
} from "../../src/core/witness.ts";
import { sha256, verifyNow } from "../native.ts";
import type { State, WitnessStore } from "./store.ts";

export interface Witnessing {
  signer: Signer;
  /** The keys of each log that is followed, by its origin. */
  logs: ReadonlyMap<string, readonly Vkey[]>;
  store: WitnessStore;
  /** Milliseconds since the epoch. */
  now(): number;
}

export interface Answer {
  status: number;
  body: string;
  type: string;
}

const TEXT = "text/plain; charset=utf-8";
const SIZE = "text/x.tlog.size";
/** Whoever loses a race looks again, and then mostly finds another size than the request names. */
const TRIES_MAX = 16;

/** Nothing is awaited from the look at the last checkpoint to the one that is kept. */
export function addCheckpoint(body: Uint8Array, witnessing: Witnessing): Answer {
  const request = parseAddCheckpoint(decodeUtf8(body) ?? "");
  if (request === undefined) return refusal({ status: 400, problem: "no add-checkpoint request" });
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const answer = tryOnce(request, witnessing);
    if (answer !== undefined) return answer;
  }
  return { status: 503, body: "busy\n", type: TEXT };
}

/** Undefined where another process was faster. */
function tryOnce(
  request: AddCheckpoint,
  { logs, now, signer, store }: Witnessing,
): Answer | undefined {
  let state: State | undefined;
  const judged = judgeAddCheckpoint(request, {
    vkeysOf: (origin) => logs.get(origin),
    last: (origin) => {
      state = store.latest(origin);
      return state.cosigned?.checkpoint;
    },
    verify: verifyNow,
    hash: sha256,
  });
  if (judged.status !== 200) return refusal(judged);
  if (state === undefined) throw new Error("witness: judged without a look");
  const { checkpoint, text } = judged;
  const line = cosign(signer, text, BigInt(Math.floor(now() / 1000)));
  const vkeys = logs.get(checkpoint.origin) ?? [];
  const own = (linesOf(request.checkpoint)?.lines ?? []).filter(({ id, name }) =>
    vkeys.some((vkey) => vkey.id === id && vkey.name === name),
  );
  const note = noteOf(text, [...own.map((signed) => signed.line), line]);
  // Kept before it is said: no cosignature is out that a crash could make this witness forget.
  const kept = store.advance(checkpoint.origin, state, note);
  return kept ? { status: 200, body: line, type: TEXT } : undefined;
}

function refusal(answer: Exclude<AddCheckpointAnswer, { status: 200 }>): Answer {
  const { status } = answer;
  if (status === 409) return { status, body: `${answer.size}\n`, type: SIZE };
  return { status, body: `${answer.problem}\n`, type: TEXT };
}
