/** Breaks that are over though nobody decided: each by an entry that shows it (docs/reconciliation.md). */
import type { Body } from "../../src/core/entry.ts";
import type { Sha256 } from "../../src/core/hash.ts";
import { canonical } from "../../src/core/json.ts";
import { encodeBase64, encodeUtf8 } from "../../src/core/text.ts";
import type { Turn } from "../prefix/rule.ts";
import type { Key, State } from "../prefix/state.ts";
import type { Gap, OpenBreak } from "./state.ts";

/** Of reports and attestations, which stand anywhere before, the end of the walk says whether they show it. */
export function heal(
  state: State,
  open: OpenBreak,
  { by, evidence }: Body<"break_resolved">,
  turn: Turn,
): void {
  turn.expect(by === "service", "break-form", `healed, by ${by}`);
  if (evidence === "") return;
  const shown = BigInt(evidence);
  const { shows } = state.evidence;
  // No entry is that of a key which the log does not know, nor usage of a job without a number.
  const key = state.keys.get(open.kid)?.index ?? turn.index;
  switch (open.code) {
    case "missing-report":
    case "missing-job":
    case "duration":
    case "foreign-runner":
    case "other-namespace":
      if (open.job_id === "") break;
      shows.heal(shown, turn.index, "job", BigInt(open.job_id));
      return;
    case "counter-gap":
      if (open.gap === undefined || !hasCome(state.keys.get(open.kid), open.gap)) break;
      shows.heal(shown, turn.index, "counter", key, open.gap);
      return;
    case "missing-attestation":
      shows.heal(shown, turn.index, "silence", key);
      return;
    case "undelivered":
      shows.heal(shown, turn.index, "backlog", key);
      return;
    case "portal-difference":
      return; // feed/rules.ts
    case "source-count":
      if (isOfSource(state, open, shown)) return;
      break;
    default:
  }
  turn.expect(false, "break-form", `entry ${evidence} heals no ${open.code}`);
}

/** What a `counter-gap` says has not come; undefined where its fingerprint is of another gap. */
export function gapIn(
  { code, detail, fingerprint, kid, tracking }: Body<"break">,
  hash: Sha256,
): Gap | undefined {
  const said = /^\d+ of counters (?<first>\d{1,19}) to (?<last>\d{1,19}) have not come$/.exec(
    detail,
  );
  const { first, last } = said?.groups ?? {};
  if (first === undefined || last === undefined || BigInt(first) > BigInt(last)) return undefined;
  const about = encodeUtf8(canonical({ about: { first, kid }, code, tracking }));
  if (encodeBase64(hash(about)) !== fingerprint) return undefined;
  return { first: BigInt(first), last: BigInt(last) };
}

function hasCome(key: Key | undefined, { first, last }: Gap): boolean {
  return key?.came.reach(first, last) ?? false;
}

/** The first break about that day of the source, or one that came again after the end of another. */
function isOfSource(
  { evidence, tools }: State,
  { fingerprint }: OpenBreak,
  shown: bigint,
): boolean {
  const about = evidence.counts.get(shown);
  if (about === undefined) return false;
  const identity = { about, code: "source-count", tracking: "hosted" };
  const print = (said: typeof identity & { after?: string }): string => {
    return encodeBase64(tools.hash(encodeUtf8(canonical(said))));
  };
  let found = print(identity);
  while (found !== fingerprint) {
    const after = evidence.recounted.get(found);
    if (after === undefined) return false;
    found = print({ ...identity, after: String(after) });
  }
  return true;
}
