/** What the auditor knows at the beginning of a log, with its tallies in memory. */
import { startDecided } from "../../audit/control/decided.ts";
import { startEvidence } from "../../audit/evidence/state.ts";
import { EventCounts } from "../../audit/feed/counts.ts";
import { startFeed } from "../../audit/feed/state.ts";
import { Ledger } from "../../audit/money/ledger.ts";
import { AdjustmentLines } from "../../audit/money/lines.ts";
import { startMoney } from "../../audit/money/state.ts";
import { sha256, verifyNow } from "../../audit/native.ts";
import { type State, startState } from "../../audit/prefix/state.ts";
import { memoryPiles } from "../../audit/tally/memory.ts";
import { Once } from "../../audit/tally/once.ts";
import { Standing } from "../../audit/tally/standing.ts";
import type { EntryOf } from "../../src/core/entry.ts";

export function stateOf(entry: EntryOf<"log">): State {
  const silent = () => undefined;
  return startState(entry, {
    origin: `test/${entry.log}`,
    tools: { hash: sha256, verify: verifyNow },
    decided: startDecided({ known: undefined, token: silent, decision: silent }),
    evidence: startEvidence(new Once(memoryPiles), new Standing(memoryPiles)),
    feed: startFeed(new EventCounts(memoryPiles)),
    money: startMoney({
      figure: silent,
      ledger: new Ledger(memoryPiles),
      lines: new AdjustmentLines(memoryPiles, sha256),
    }),
  });
}
